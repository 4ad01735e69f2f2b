#!/usr/bin/env bash
# Explores the interleavings of the product's threads: tests/threads.sh [options] [TEST]
#
#   --schedules N   run N schedules of each test (default: 1000)
#   --seed N        start with this seed (default: a fixed seed, so that every run has the same schedules)
#   --replay FILE   run TEST once, with the schedule that a failure wrote to FILE
#   TEST            run only the tests whose names begin with TEST
#
# A failure writes its schedule to a file in target/shuttle/failures/, and prints the file's name. After a failure of a
# random schedule, which also prints its seed, SHUTTLE_SEED=N tests/threads.sh TEST runs it again.
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
