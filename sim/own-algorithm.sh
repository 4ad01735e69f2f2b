#!/bin/sh
# Builds the code of the page "Your own algorithm in the matrix" as a crate outside of this repository, and runs it. A test would have
# to run cargo inside of cargo and to build the laboratory a second time, so this is a script; a test compares the page with the example
# `own_algorithm`, which every build compiles.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
page="$root/docs/src/own-algorithm.md"
crate=$(mktemp -d)
trap 'rm -rf "$crate"' EXIT
mkdir "$crate/src"
block() {
    sed -n "/<!-- own-algorithm: $1 -->/,/<!-- end -->/p" "$page" | sed '1,/^```[a-z]/d; /^```$/,$d'
}
block Cargo.toml | sed "s#\.\./quorlock/#$root/#" >"$crate/Cargo.toml"
block main.rs >"$crate/src/main.rs"
lines=$(wc -l <"$crate/src/main.rs")
test "$lines" -le 80 || { echo "the code has $lines lines, more than 80" >&2; exit 1; }
# The same versions and the same folder, so that what this repository has compiled is used again.
cp "$root/Cargo.lock" "$crate/Cargo.lock"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
cargo build --manifest-path "$crate/Cargo.toml" --profile "${PROFILE:-release}"
case "${PROFILE:-release}" in dev | test) folder=debug ;; *) folder=${PROFILE:-release} ;; esac
"$CARGO_TARGET_DIR/$folder/my-lock" matrix --runs "${RUNS:-200}" --out "$crate/matrix" \
    --lock in-turns --lock lease-record --lock published --lock ours \
    --class quiet --class "client pauses" --class "restarts, amnesia"
