#!/usr/bin/env bash
# Runs campaigns on seeds that the hash of the commit chooses: sim/commit-seeds.sh PROGRAM
#
# PROGRAM is a built quorlock-sim. The seeds that tests and pages use are the same for every commit, so that code and laws can
# come to fit them. These are new with each commit, and are the same whenever the commit is tested. A checkout that is not one of
# git is tested on the seeds of no commit.
set -euo pipefail

case ${1-} in
  '' | -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit "$([ -n "${1-}" ] && echo 0 || echo 64)" ;;
esac
program=$1
commit=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse HEAD 2>/dev/null) || commit=0000000000
# Beyond the seeds of sweeps and pages.
first=$((0x${commit:0:10} + 100000000))
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

printf 'commit %s: seeds from %s on\n' "${commit:0:10}" "$first"
failed=
# explore SEEDS LANE DEPLOYMENT LOCK
explore() {
  local options=(--seeds "$first..$((first + $1))" --lane "$2" --deployment "$3" --lock "$4")
  if "$program" explore "${options[@]}" --keep-going --out "$out" >"$out/said" 2>&1; then
    printf '%s, %s, %s: %s seeds, no violation\n' "$2" "$3" "$4" "$1"
  else
    printf 'quorlock-sim explore %s\n' "${options[*]}"
    cat "$out/said"
    failed=yes
  fi
}
for lock in single multi redlock; do
  explore 600 fast servers $lock
  explore 300 fast stores $lock
  explore 10 turmoil servers $lock
done
explore 6 turmoil sentinels single
explore 6 turmoil cluster redlock
[ -z "$failed" ]
