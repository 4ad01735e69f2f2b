#!/usr/bin/env bash
# Builds quorlock-sim with profile-guided optimization, for campaigns of hours: sim/profile-guided.sh
#
# The program is built twice. The first build counts what its code does in campaigns and in runs without faults; the
# compiler of the second one uses these counts. The seeds are none that a page or a test uses. It needs the component
# llvm-tools of the compiler: rustup component add llvm-tools
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'sim/profile-guided.sh: %s\n' "$*" >&2
  exit 1
}

case ${1-} in
  '') ;;
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' sim/profile-guided.sh; exit ;;
  *) fail "unknown argument $1: it takes none" ;;
esac

host=$(rustc -vV | sed -n 's/^host: //p')
merge=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$merge" ] || fail "llvm-profdata is missing: rustup component add llvm-tools"

export CARGO_TARGET_DIR=$PWD/target/profile-guided
program=$CARGO_TARGET_DIR/$host/dist/quorlock-sim
profiles=$CARGO_TARGET_DIR/profiles
# With a target, the flags do not apply to build scripts and macros.
build() { RUSTFLAGS=$1 cargo build --quiet --profile dist --package quorlock-sim-lab --bin quorlock-sim --target "$host"; }

printf '== building with counters\n' >&2
rm -rf "$profiles"
build "-Cprofile-generate=$profiles"

printf '== counting\n' >&2
counted() { "$program" explore --keep-going --out "$CARGO_TARGET_DIR/failures" "$@" >/dev/null; }
for lock in single multi redlock; do
  counted --lock "$lock" --seeds 7000000..7000400
done
counted --faults none --workload mutual-exclusion --nodes 5 --clients 3 --seeds 7001000..7001400
counted --lane turmoil --seeds 7002000..7002040
counted --lane turmoil --faults none --workload mutual-exclusion --nodes 5 --clients 3 --seeds 7003000..7003010

printf '== building with the counts\n' >&2
"$merge" merge --output "$profiles/merged.profdata" "$profiles"
build "-Cprofile-use=$profiles/merged.profdata"
printf '%s\n' "${program#"$PWD/"}"
