#!/usr/bin/env bash
# Measures the studies of the book again: sim/lab/studies/reproduce.sh PROGRAM --quick|--full [DIR]
#
# PROGRAM is a built quorlock-sim. Tables and pictures go to DIR (default: studies). The seeds follow from the hash of the commit that
# COMMIT names, or from that of HEAD, so that they are none on which this code was developed. --quick has at most 64 runs a cell, for a
# few minutes; --full has the runs of the files. A study that was interrupted is continued. Exits with 1 if a lock broke that is expected
# to hold, or a study could not be run.
set -euo pipefail

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }
case ${1-} in
  -h | --help) usage; exit ;;
  '') usage >&2; exit 64 ;;
esac
program=$(realpath "$1")
case ${2-} in
  --quick) runs=(--runs 64) rates=(--runs 3000) ;;
  --full) runs=() rates=(--runs 140000) ;;
  *) usage >&2; exit 64 ;;
esac
mkdir -p "${3:-studies}"
out=$(realpath "${3:-studies}")
cd "$(dirname "${BASH_SOURCE[0]}")"
commit=${COMMIT:-$(git rev-parse HEAD)}

wrong=0
# measure NAME COMMAND..: what the command prints goes to NAME.txt.
measure() {
  local name=$1 resume=() code=0
  shift
  [ ! -e "$out/$name-rows/manifest.json" ] || resume=(--resume)
  "$@" --commit "$commit" --results "$out/$name-rows" "${resume[@]}" >"$out/$name.txt" || code=$?
  # 4: bounds are wider than asked for, and hold all the same.
  case $code in
    0 | 4) printf '%s\n' "$name" ;;
    *) printf '%s: exit code %s\n' "$name" "$code"; wrong=1 ;;
  esac
}
for study in *.toml; do
  measure "${study%.toml}" "$program" study "$study" --out "$out" "${runs[@]}"
done
for deployment in rack rack-published three-zones three-zones-published zone zone-consensus zone-published; do
  measure "$deployment" "$program" rate "../deployments/$deployment.toml" "${rates[@]}"
done
exit $wrong
