#!/usr/bin/env bash
# Runs seeds of every workload with every lock, deployment and lane.
#
#   sim/sweep.sh [--help] PROGRAM [DIR]
#
# PROGRAM is a built quorlock-sim. `cargo build -p quorlock-sim-lab --profile test` makes target/debug/quorlock-sim, which is
# optimized and built in minutes; `--profile dist` is faster and takes long to build.
#
# DIR, by default `sweep`, gets one line per finished part in results.csv, and the failures. A part is a range of seeds of
# one combination. All combinations get their first part before any gets its second one. If the script is stopped and
# started again, it continues after the parts that are in results.csv: delete DIR to start over with another program.
#
#   FAST=20000      how many seeds of each combination in the lane fast
#   TURMOIL=2000    how many seeds of each combination in the lane turmoil
#   PARTS=20        in how many parts the seeds of each combination are run
#   JOBS=           how many threads; by default, one per core
#   ONLY=           a regular expression that selects combinations, such as `^fast,servers,multi,`
#
# Exits with 0 if every part is clean, or with the smallest code of a part that is not, which is that of `explore`: 1 if it
# could not be run, 2 if a safety property is violated, 3 if there is no progress, 4 if it shows nothing.
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
case ${1:-} in
  --help | -h) usage; exit 0 ;;
  '') usage >&2; exit 1 ;;
esac
program=$(realpath "$1")
dir=${2:-sweep}
fast=${FAST:-20000} turmoil=${TURMOIL:-2000} parts=${PARTS:-20} only=${ONLY:-}
[ -x "$program" ] || { echo "$1 is not a program" >&2; exit 1; }
results=$dir/results.csv
mkdir -p "$dir"
[ -f "$results" ] || echo 'lane,deployment,lock,workload,seeds,exit code' >"$results"

# The program lists its workloads.
workloads=$("$program" explore --help | sed -n 's/.*\[possible values: \(mutual-exclusion,.*\)\]/\1/p' | tr -d ' ' | tr , ' ')
[ -n "$workloads" ] || { echo "$1 explore --help lists no workloads" >&2; exit 1; }

# Prints every combination that the program runs. It refuses the others, such as a cluster in the lane fast.
combinations() {
  local lane deployment lock workload
  for lane in fast turmoil; do
    for deployment in servers sentinels cluster stores; do
      for lock in single multi redlock; do
        for workload in $workloads; do
          local name=$lane,$deployment,$lock,$workload
          [[ $name =~ $only ]] || continue
          ! "$program" run --plan --seed 0 --lane "$lane" --deployment "$deployment" --lock "$lock" \
            --workload "$workload" >/dev/null 2>&1 || echo "$name"
        done
      done
    done
  done
}

mapfile -t all < <(combinations)
echo "${#all[@]} combinations"
for part in $(seq 0 $((parts - 1))); do
  for name in "${all[@]}"; do
    IFS=, read -r lane deployment lock workload <<<"$name"
    [ "$lane" = fast ] && seeds=$fast || seeds=$turmoil
    range=$((seeds * part / parts))..$((seeds * (part + 1) / parts))
    [ "${range%%..*}" != "${range##*..}" ] || continue
    ! grep -q "^$name,$range," "$results" || continue
    code=0
    "$program" explore --seeds "$range" --keep-going --lane "$lane" --deployment "$deployment" --lock "$lock" \
      --workload "$workload" ${JOBS:+--jobs "$JOBS"} --out "$dir/$lane-$deployment-$workload" >"$dir/last.txt" 2>&1 ||
      code=$?
    echo "$name,$range,$code" >>"$results"
    if [ "$code" != 0 ]; then
      echo "$name, seeds $range: exit code $code"
      cat "$dir/last.txt"
    fi
  done
done

codes=$(cut -d, -f6 "$results" | sort -u)
echo "$(($(wc -l <"$results") - 1)) parts in $results"
for code in 1 2 3 4; do
  ! grep -qx "$code" <<<"$codes" || exit "$code"
done
