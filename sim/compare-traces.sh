#!/usr/bin/env bash
# Checks that two builds of quorlock-sim behave in the same way, as they must after a refactoring of the simulator.
#
#   sim/compare-traces.sh BEFORE AFTER
#
# Each of BEFORE and AFTER is a built quorlock-sim, or a revision. A revision is built in a temporary worktree. Optimized
# builds of one profile take the least time: `cargo build -p quorlock-sim-lab --profile test` makes target/debug/quorlock-sim.
#
# It compares the following, and shows lines that differ:
# - the trace hash of each seed, for the locks single, multi and redlock, under the faults `inside` and `all`;
# - the trace hash of a few seeds over simulated TCP;
# - the table of the matrix, as CSV;
# - the verdict of every case of the catalog.
#
#   SEEDS=2000   how many seeds of each lock
#   TCP=20       how many of them over simulated TCP
#   RUNS=60      how many runs of each pair of the matrix; 0 leaves the matrix out
#   CATALOG=     a filter as for `quorlock-sim scenarios`; `none` leaves the catalog out
#
# Exits with 0 if everything is equal, 1 if something differs, 2 if the comparison failed.
set -euo pipefail

[ $# -eq 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
seeds=${SEEDS:-2000} tcp=${TCP:-20} runs=${RUNS:-60} catalog=${CATALOG:-}
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
scratch=$(mktemp -d)
clean_up() {
  for side in before after; do
    [ ! -d "$scratch/$side.tree" ] || git -C "$top" worktree remove --force "$scratch/$side.tree"
  done
  rm -rf "$scratch"
}
trap clean_up EXIT

# Copies or builds a program to $scratch/SIDE.program.
provide() {
  local side=$1 what=$2
  if [ -f "$what" ]; then
    cp "$what" "$scratch/$side.program"
    return
  fi
  git -C "$top" rev-parse --quiet --verify "$what^{commit}" >/dev/null ||
    { echo "$what is neither a file nor a revision" >&2; return 1; }
  git -C "$top" worktree add --quiet --detach "$scratch/$side.tree" "$what"
  # Revisions before the crates of the simulator have the command in the crate quorlock-sim.
  local package=quorlock-sim
  [ ! -d "$scratch/$side.tree/sim/lab" ] || package=quorlock-sim-lab
  (cd "$scratch/$side.tree" && CARGO_TARGET_DIR=$scratch/target cargo build --quiet --profile test -p "$package")
  cp "$scratch/target/debug/quorlock-sim" "$scratch/$side.program"
}
provide before "$1" || exit 2
provide after "$2" || exit 2

differs=0
# Runs both programs with the same arguments in separate folders, and compares what FILTER leaves of their output.
# A program may end with any code: that something is violated is a result, and it must be the same on both sides.
compare() {
  local title=$1 filter=$2 lines
  shift 2
  for side in before after; do
    mkdir -p "$scratch/$side"
    (
      cd "$scratch/$side"
      code=0
      "$scratch/$side.program" "$@" >printed || code=$?
      $filter <printed
      echo "exit code $code"
    ) >"$scratch/$side.txt"
  done
  lines=$(($(wc -l <"$scratch/before.txt") - 1))
  if diff "$scratch/before.txt" "$scratch/after.txt" >"$scratch/diff.txt"; then
    echo "equal: $title, $lines lines"
  else
    echo "DIFFERENT: $title"
    sed -n '1,40p' "$scratch/diff.txt"
    differs=1
  fi
  # Equal and empty shows nothing.
  if [ "$lines" -eq 0 ]; then
    echo "nothing was printed: $title" >&2
    exit 2
  fi
}
# Revisions before the results of all commands had one form print how long each case took, behind the column "first".
without_times() { sed -E 's/^(.*[^ ]) +[0-9.]+ +(ns|µs|us|ms|s)  /\1  /; 1s/ +time  verdict/  verdict/'; }
table() { cat matrix/matrix.csv; }

for lock in single multi redlock; do
  for faults in inside all; do
    compare "explore --lock $lock --faults $faults, seeds 0..$seeds" cat \
      explore --hashes --seeds "0..$seeds" --lock "$lock" --faults "$faults"
    [ "$tcp" = 0 ] || compare "the same over TCP, seeds 0..$tcp" cat \
      explore --hashes --seeds "0..$tcp" --lock "$lock" --faults "$faults" --lane turmoil
  done
done
[ "$runs" = 0 ] || compare "matrix --runs $runs" table matrix --runs "$runs" --out matrix
[ "$catalog" = none ] || compare "verdicts of scenarios $catalog" without_times scenarios ${catalog:+"$catalog"}
exit $differs
