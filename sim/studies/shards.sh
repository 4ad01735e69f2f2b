#!/usr/bin/env bash
# The study of shards: does a campaign that is split and interrupted have the rows of one that is not?
#
#   sim/studies/shards.sh PROGRAM [DIR]
#
# PROGRAM is a built quorlock-sim. A campaign runs in one process, and in eight shards, one of which is killed (SIGKILL) again and again and
# resumed. Then the shards are merged: the sorted rows, the output and the exit code must be those of the one process. Rows go to DIR, by
# default `shards`. SEEDS, COMMIT: how many seeds, and the commit that chooses them. Exits with 1 if anything differs. It needs zstd.
set -euo pipefail

case ${1-} in
  '' | -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit "$([ -n "${1-}" ] && echo 0 || echo 64)" ;;
esac
program=$(realpath "$1")
mkdir -p "${2:-shards}"
cd "${2:-shards}"
rm -rf whole merged shard-*
commit=${COMMIT:-0000000000}
first=$((0x${commit:0:10} + 100000000))
campaign=(explore --lock redlock --variant published --faults all --keep-going --seeds "$first..$((first + ${SEEDS:-20000}))" --out failures)

code=0
"$program" "${campaign[@]}" --json --results whole >whole.json || code=$?
killed=0
for shard in 0 1 2 3 4 5 6 7; do
  resume=()
  if [ $shard = 3 ]; then
    for _ in 1 2 3; do
      "$program" "${campaign[@]}" --shard $shard/8 --results shard-$shard "${resume[@]}" >/dev/null &
      process=$!
      # Killed when it has written rows that were not there, which it does twice a second.
      before=$(stat -c %s shard-$shard/rows.jsonl.zst 2>/dev/null || echo 0)
      while kill -0 $process 2>/dev/null && [ "$(stat -c %s shard-$shard/rows.jsonl.zst 2>/dev/null || echo 0)" = "$before" ]; do sleep 0.01; done
      ! kill -9 $process 2>/dev/null || killed=$((killed + 1))
      wait $process 2>/dev/null || true
      resume=(--resume)
    done
    printf 'shard 3 was killed %s times, with %s rows\n' $killed "$({ zstdcat shard-3/rows.jsonl.zst 2>/dev/null || true; } | wc -l)"
  fi
  # 2: this campaign breaks a lock. 4: a shard may be too small to show anything.
  "$program" "${campaign[@]}" --shard $shard/8 --results shard-$shard "${resume[@]}" >/dev/null || [[ $? =~ ^[24]$ ]]
done
merged=0
"$program" merge shard-* --out merged --json >merged.json || merged=$?
rows=$(zstdcat whole/rows.jsonl.zst | wc -l)
if [ $merged = $code ] && cmp whole.json merged.json && [ 0 -lt "$rows" ] &&
  cmp <(zstdcat whole/rows.jsonl.zst | sort) <(zstdcat merged/rows.jsonl.zst | sort); then
  printf '%s rows of 8 shards are those of one process, exit code %s\n' "$rows" $code
else
  echo 'the shards are NOT EQUAL to one process'
  exit 1
fi
