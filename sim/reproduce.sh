#!/usr/bin/env bash
# Measures the evidence of the book again: sim/reproduce.sh PROGRAM --quick|--full [DIR]
#
# PROGRAM is a built quorlock-sim. The six studies of the book (four by `study`, rates, shards), the matrix, and `rate` against plain counting: rows, tables and pictures go to DIR
# (default: reproduced). The seeds follow from the hash of the commit that COMMIT names, or from that of HEAD, so that they are none on
# which this code was developed. --quick has few runs of everything, for about five minutes on two idle cores; --full has those of the book
# or more, for hours. What was interrupted is continued. Then each rate is compared with that of the book: their bounds must meet.
#
# Exits with 1 if a lock broke that is expected to hold, a rate does not agree, or something could not be run.
# It needs bash, python3, zstd and git. ARTIFACT.md has each claim with its command, its minutes and its tolerance.
set -euo pipefail

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0"; }
case ${1-} in
  -h | --help) usage; exit ;;
  '') usage >&2; exit 64 ;;
esac
program=$(realpath "$1")
case ${2-} in
  --quick) studies=(--runs 16) rates=2000 groups=64 matrix=10 shards=4000 counting=() ;;
  --full) studies=() rates=140000 groups=512 matrix=10000 shards=20000 counting=(--full) ;;
  *) usage >&2; exit 64 ;;
esac
mkdir -p "${3:-reproduced}"
out=$(realpath "${3:-reproduced}")
cd "$(dirname "${BASH_SOURCE[0]}")"
commit=${COMMIT:-$(git rev-parse HEAD)}

echo "$commit" >"$out/commit"

wrong=0 began=$SECONDS
failed() { printf '%s: FAILED: %s\n' "$1" "$2"; wrong=1; }
# measure NAME COMMAND..: what the command prints goes to NAME.txt, and its rows to NAME-rows.
measure() {
  local name=$1 resume=() code=0 start=$SECONDS
  shift
  [ ! -e "$out/$name-rows/manifest.json" ] || resume=(--resume)
  "$program" "$@" --commit "$commit" --results "$out/$name-rows" "${resume[@]}" >"$out/$name.txt" || code=$?
  # 4: bounds are wider than asked for, and hold all the same.
  case $code in
    0 | 4) printf '%s: %s s\n' "$name" $((SECONDS - start)) ;;
    *) failed "$name" "exit code $code" ;;
  esac
}

for study in studies/*.toml; do
  measure "$(basename "$study" .toml)" study "$study" --out "$out" "${studies[@]}"
done
: >"$out/rates.jsonl"
for deployment in zone three-zones rack; do
  file=studies/deployments/$deployment.toml
  while IFS= read -r lock; do
    name=$deployment-${lock//[^A-Za-z]/-} runs=$rates
    if [[ $lock == *Sentinel* ]]; then
      # Runs over sockets are slow.
      [ $groups != 64 ] || [ $deployment = zone ] || continue
      runs=$groups
    fi
    measure "$name" rate "$file" --lock "$lock" --runs "$runs" --json
    python3 studies/deployments/row.py "$deployment" "$lock" "$out/$name.txt" \
      <(zstdcat "$out/$name-rows/rows.jsonl.zst") "$out/$name-rows/manifest.json" >>"$out/rates.jsonl" || failed "$name" 'no rate'
  done < <(sed -n 's/^name = "\(.*\)"$/\1/p' "$file")
done
python3 studies/deployments/compare.py "$out/rates.jsonl" ../docs/results/rates.jsonl || failed rates 'a rate does not agree with that of the book'
start=$SECONDS
if COMMIT=$commit SEEDS=$shards studies/shards.sh "$program" "$out/shards" >"$out/shards.txt"; then
  printf 'shards: %s s, %s\n' $((SECONDS - start)) "$(tail -n 1 "$out/shards.txt")"
else
  failed shards "$out/shards.txt"
fi
measure matrix matrix --runs "$matrix" --out "$out/matrix"
start=$SECONDS
if ./check-rates.sh "$program" "${counting[@]}" >"$out/counting.txt"; then
  printf 'counting: %s s, %s\n' $((SECONDS - start)) "$(tail -n 1 "$out/counting.txt")"
else
  failed counting "$out/counting.txt"
fi
printf 'seeds of commit %s, %s s\n' "$commit" $((SECONDS - began))
exit $wrong
