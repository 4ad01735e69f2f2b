#!/usr/bin/env bash
# Compares shards on many machines with one process: sim/check-machines.sh PROGRAM
#
# PROGRAM is a built quorlock-sim. A campaign and a matrix are run by one process, by an array of eight tasks on Slurm
# (sim/lab/machines/array.sbatch), and by twenty commands of which two run at a time. The rows of all shards must be those of the one process
# byte for byte, in another order; so must be what is printed, and the exit code. The cluster is this machine alone, as root, on the
# loopback interface, and ends with the script. Debian: apt-get install slurm-wlm munge parallel zstd; without GNU parallel, xargs
# starts the commands. Exits with 1 if anything differs, and with 69 if a program is missing.
set -euo pipefail

case ${1-} in
  '' | -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit "$([ -n "${1-}" ] && echo 0 || echo 64)" ;;
esac
QUORLOCK_SIM=$(realpath "$1")
export QUORLOCK_SIM
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
if [ -z "${SLURM_CONF-}" ]; then
  command -v zstdcat >/dev/null || { echo 'there is no zstdcat (Debian: apt-get install zstd)' >&2; exit 69; }
  exec python3 "$here/../crates/quorlock-python/research/slurm.py" "$here/check-machines.sh" "$QUORLOCK_SIM"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

wrong=0
# compare NAME RESULTS..: merges shards, and compares them with the results of one process in NAME.
compare() {
  local name=$1 code=0 rows
  shift
  rm -rf merged
  "$QUORLOCK_SIM" merge "$@" --out merged --json >merged.json || code=$?
  rows=$(zstdcat "$name/rows.jsonl.zst" | wc -l)
  if [ "$code" = "$(cat "$name.code")" ] && cmp "$name.json" merged.json && [ 0 -lt "$rows" ] &&
    cmp <(zstdcat "$name/rows.jsonl.zst" | sort) <(zstdcat merged/rows.jsonl.zst | sort); then
    printf '%s: %s rows of %s shards are those of one process, exit code %s\n' "$name" "$rows" $# "$code"
  else
    printf '%s: %s shards are NOT EQUAL to one process\n' "$name" $#
    wrong=1
  fi
}
# check NAME COMMAND..
check() {
  local name=$1 code=0
  shift
  "$QUORLOCK_SIM" "$@" --out "$scratch/out" --results "$name" --json >"$name.json" || code=$?
  echo "$code" >"$name.code"
  mkdir slurm
  # The code is the largest of all tasks: a shard that found something ends with that of its finding.
  sbatch --wait --quiet --array=0-7 "$here/lab/machines/array.sbatch" 8 "$scratch/slurm" "$@" --out "$scratch/out" || true
  compare "$name" slurm/shard-*
  start=(xargs -P 2 -I '{}')
  ! parallel --version 2>/dev/null | grep -q '^GNU parallel' || start=(parallel -q -j 2 --will-cite)
  seq 0 19 | "${start[@]}" "$QUORLOCK_SIM" "$@" --out "$scratch/out" --jobs 1 --shard '{}/20' --results 'alone-{}' >/dev/null || true
  compare "$name" alone-*
  rm -rf slurm alone-*
}
check campaign explore --seeds 0..400 --variant published --faults all --keep-going
check matrix matrix --runs 40 --lock published --lock ours --class steps --class 'restarts, amnesia'
exit $wrong
