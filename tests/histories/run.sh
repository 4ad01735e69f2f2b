#!/usr/bin/env bash
# Compares the simulator's checkers with two others, on histories of all kinds of work: tests/histories/run.sh [HISTORIES]
#
# HISTORIES histories (default: 3,000) are written to target/histories. In half of them the three locks run within their
# assumptions, in the other half beyond them, also with Redlock as published. Porcupine (Go) and read.py (Python) judge
# each history. The script exits with 1 if a verdict differs from the header of the file, or if a kind of break occurs in
# no history. It needs Go and Python 3, and takes about two minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

histories=${1:-3000}
[[ $histories =~ ^[0-9]+$ && $histories -ge 6 ]] ||
  { echo "the number of histories must be at least 6: tests/histories/run.sh 3000" >&2; exit 64; }
for program in go python3; do
  command -v "$program" >/dev/null || { echo "$program is missing (Debian: apt-get install golang python3)" >&2; exit 2; }
done

cargo build --quiet --profile test -p quorlock-sim-lab
sim=$PWD/target/debug/quorlock-sim
folder=$PWD/target/histories
rm -rf "$folder"
# explore FOLDER OPTIONS...: runs a campaign. Breaks beyond the assumptions are expected, so a break is not a failure here.
explore() {
  local into=$folder/$1 code=0
  shift
  mkdir -p "$into"
  "$sim" explore --seeds "0..$((histories / 6))" --keep-going --history "$into" --out "$folder/failures" "$@" >/dev/null || code=$?
  [ $code -le 4 ] || { echo "quorlock-sim explore $* ended with $code" >&2; exit 1; }
}
for lock in single multi redlock; do
  explore "$lock-inside" --lock "$lock" --faults inside
done
explore leading-all --lock single --faults all --workload leading
explore redlock-all --lock redlock --faults all
explore published-all --lock redlock --faults all --variant published

files() { find "$folder" -name '*.jsonl' -print0 | sort -z; }
(cd tests/histories/porcupine && go build -o "$folder/porcupine" .)
files | xargs -0 -n 500 python3 tests/histories/read.py | sort >"$folder/read.txt"
files | xargs -0 -n 500 "$folder/porcupine" | sort >"$folder/porcupine.txt"
headers='
import json, sys
for path in sys.argv[1:]:
    header = json.loads(open(path, encoding="utf-8").readline())
    broken = [header["overlaps"], "fencing" in header["violated"], "terms" in header["violated"]]
    print(path, *("broken" if one else "ok" for one in broken))
'
files | xargs -0 -n 500 python3 -c "$headers" | sort >"$folder/ours.txt"

wrong=0
for other in read porcupine; do
  if ! diff "$folder/ours.txt" "$folder/$other.txt" >"$folder/$other.diff"; then
    printf '%s disagrees (< ours, > its; overlaps, fencing, terms):\n' "$other" >&2
    head -n 20 "$folder/$other.diff" >&2
    wrong=1
  fi
done
awk '{ n++; o += $2 == "broken"; f += $3 == "broken"; t += $4 == "broken" }
  END { printf "%d histories: overlaps in %d, fencing broken in %d, terms in %d\n", n, o, f, t; exit !(o && f && t) }' "$folder/ours.txt" ||
  { echo "a kind of break occurs in no history, so the checkers were not tested on it" >&2; wrong=1; }
[ $wrong = 0 ] && echo "three checkers agree on every history"
exit $wrong
