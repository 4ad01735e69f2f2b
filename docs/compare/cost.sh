#!/usr/bin/env bash
# Measures what `quorlock run` costs beyond the lock: docs/compare/cost.sh [QUORLOCK] [ROUNDS]
#
# QUORLOCK is a built program (default: target/release/quorlock), ROUNDS the number of runs of each command (default:
# 200). The commands take turns on one redis-server, so that other load of the machine affects all of them:
#   true                      a process, and nothing else
#   quorlock inspect NAME     starts, connects, sends one request
#   quorlock run NAME -- true starts, connects, acquires, starts the guardian and the command, releases
# It prints the medians in milliseconds, and the memory of wrapper and guardian while a command runs: resident, and with
# the pages of the program that both share counted once (the proportional set size).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
quorlock=$(realpath "${1:-target/release/quorlock}") rounds=${2:-200}
scratch=$(mktemp -d)
server=
clean_up() {
  [ -z "$server" ] || kill "$server"
  rm -rf "$scratch"
}
trap clean_up EXIT
redis-server --port 0 --unixsocket "$scratch/socket" --save '' --dir "$scratch" >/dev/null &
server=$!
until [ -S "$scratch/socket" ]; do sleep 0.05; done
export QUORLOCK_NODES=unix://$scratch/socket

once() { # NAME COMMAND...: notes how long the command took, in microseconds
  local name=$1 begin=${EPOCHREALTIME/./}
  shift
  "$@" >/dev/null 2>&1
  echo $((${EPOCHREALTIME/./} - begin)) >>"$scratch/$name"
}
for ((round = 0; round < rounds; round++)); do
  once true "$(type -P true)"
  once inspect "$quorlock" inspect cost
  once run "$quorlock" run -q -n cost -- true
done
median() { sort -n "$scratch/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
for name in true inspect run; do
  awk -v name="$name" -v us="$(median "$name")" 'BEGIN { printf "%-8s %6.2f ms\n", name, us / 1000 }'
done
awk -v run="$(median run)" -v inspect="$(median inspect)" \
  'BEGIN { printf "run beyond inspect: %.2f ms\n", (run - inspect) / 1000 }'

"$quorlock" run -q -n cost -- sleep 2 &
wrapper=$!
sleep 1
for process in $wrapper $(pgrep -P "$wrapper"); do
  awk -v pid="$process" '
    /^Rss/ { rss = $2 } /^Pss:/ { pss = $2 }
    END { printf "memory of process %d: %.1f MB, without the half of what both share %.1f MB\n", pid, rss / 1024, pss / 1024 }
  ' "/proc/$process/smaps_rollup"
done
wait "$wrapper"
