#!/usr/bin/env bash
# Adds a made-up kind of fault (sim/lab/made-up/fault.patch) to a copy of the sources, file by file.
#
#   sim/made-up-fault.sh
#
# With its row of the table alone, the compiler must ask for the fields that are drawn; then for the effect in the
# simulator, and then for the effects on real servers and on served ports. With all of them, the simulator must compile,
# and the tests of plans and of the page must hold for the new kind. Takes some minutes, most of them the first time.
#
# Exits with 0 if all of this is so, 1 if it is not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
patch=$PWD/sim/lab/made-up/fault.patch
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/made-up
copy=$CARGO_TARGET_DIR/copy
rm -rf "$copy"
mkdir -p "$copy"
trap 'rm -rf "$copy"' EXIT
# Files keep their times, so that unchanged files are not compiled again.
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$copy"

# Applies the part of the patch that changes the files whose paths end in these.
add() {
  local file
  for file in "$@"; do
    awk -v file="$file\$" '/^diff --git/ { on = $0 ~ file } on' "$patch" | patch --silent -p1 --directory "$copy"
  done
}

# Checks that a crate does not compile without these files, and that the compiler names each of them.
asks_for() {
  local crate=$1 file told
  shift
  if told=$(cd "$copy" && cargo check --quiet --package "$crate" 2>&1); then
    echo "$crate compiles without $*" >&2; exit 1
  fi
  for file in "$@"; do
    grep --quiet --fixed-strings "$file:" <<<"$told" || { echo "$told" >&2; echo "no error names $file" >&2; exit 1; }
    echo "asked for: $file"
  done
}

add fault/table.rs
asks_for quorlock-sim-plan generator/fault_generator.rs
add generator/fault_generator.rs
asks_for quorlock-sim-world engine/faults/servers.rs
add engine/faults/servers.rs
asks_for quorlock-sim-lab chaos/conductor.rs serve/node.rs
add chaos/conductor.rs serve/node.rs docs/src/plans.md
(cd "$copy" && cargo test --quiet --package quorlock-sim-plan --lib fault::)
(cd "$copy" && cargo test --quiet --package quorlock-sim-lab --test pages plan_docs)
echo "a new kind of fault changes $(grep --count '^+++ b/' "$patch") files"
