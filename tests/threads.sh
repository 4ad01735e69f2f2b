#!/usr/bin/env bash
# Explores how the threads of the product interleave: tests/threads.sh [options] [TEST]
#
#   --schedules N   schedules of each test (default 1000)
#   --seed N        the first seed (a fixed one by default: the same schedules every time)
#   --replay FILE   runs TEST once, by the schedule that a failure has left in FILE
#   TEST            how the names of the tests begin that are to run
#
# A failure leaves its schedule in target/shuttle/failures/, and says in which file. A random schedule that failed prints
# its seed as well: SHUTTLE_SEED=N tests/threads.sh TEST runs it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64; }

test=
while [ $# -gt 0 ]; do
  case $1 in
    --schedules) export QUORLOCK_SCHEDULES=${2:?a number of schedules}; shift 2 ;;
    --seed) export QUORLOCK_SEED=${2:?a seed}; shift 2 ;;
    --replay) QUORLOCK_REPLAY=$(realpath "${2:?a file}"); export QUORLOCK_REPLAY; shift 2 ;;
    -*) usage ;;
    *) [ -z "$test" ] || usage; test=$1; shift ;;
  esac
done
[ -z "${QUORLOCK_REPLAY:-}" ] || [ -n "$test" ] || { echo "--replay needs the name of the test" >&2; exit 64; }

export RUSTFLAGS="--cfg shuttle"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/shuttle
export QUORLOCK_FAILURES=${QUORLOCK_FAILURES:-$CARGO_TARGET_DIR/failures}

cargo test --quiet --package quorlock-threads --test locks -- --nocapture --test-threads 1 ${test:+"$test"}
cargo test --quiet --package quorlock --package quorlock-redis --no-default-features --lib -- \
  --nocapture --test-threads 1 "threads::$test"
