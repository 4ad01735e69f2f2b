#!/usr/bin/env bash
# Plants known races, one after another, and prints which test notices each race, and after how many schedules.
#
#   tests/threads/planted.sh [NAME..]    plant each race of tests/threads/races, or only these, in a copy of the sources
#   tests/threads/planted.sh --check     only check that each patch can be applied
#
# A race that no test notices within 10,000 schedules is a failure. The patches are made against sources without comment
# lines, so a patch still applies when a comment changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
races=tests/threads/races
most=10000

# The files that patches change.
sources() { sed -n 's,^+++ b/,,p' "$races"/*.patch | sort --unique; }

# Removes the comment lines of these files in a copy.
strip() { (cd "$1" && xargs sed -i '\,^ *//,d') < <(sources); }

field() { sed -n "s/^$1: //p" "$2"; }

check() {
  local patch copy bad=0 count=0
  copy=$(mktemp -d)
  sources | tar --create --files-from - | tar --extract --directory "$copy"
  strip "$copy"
  for patch in "$races"/*.patch; do
    count=$((count + 1))
    if [ -z "$(field Plants "$patch")" ] || [ -z "$(field 'Noticed by' "$patch")" ]; then
      echo "$patch does not state what it plants, and which test notices it" >&2; bad=1
    fi
    if ! patch --dry-run --silent --force --fuzz=0 -p1 --directory "$copy" <"$patch" >/dev/null; then
      echo "$patch no longer applies: adapt it to the changed code" >&2; bad=1
    fi
  done
  rm -rf "$copy"
  [ "$bad" = 0 ] || exit 1
  echo "$count races can be planted"
}

names=()
case ${1:-} in
  --check) check; exit ;;
  -*) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64 ;;
  '') for patch in "$races"/*.patch; do names+=("$(basename "$patch" .patch)"); done ;;
  *) names=("$@") ;;
esac

target=${CARGO_TARGET_DIR:-$PWD/target}/shuttle
copy=$target/planted
rm -rf "$copy"
mkdir -p "$copy"
trap 'rm -rf "$copy"' EXIT
# Files keep their times, so that unchanged files are not compiled again.
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$copy"
strip "$copy"
top=$PWD
export RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$target RUST_BACKTRACE=0
export QUORLOCK_SCHEDULES=$most QUORLOCK_FAILURES=$target/failures/planted
rm -rf "$QUORLOCK_FAILURES"

missed=0
printf '%-42s %-62s %s\n' race 'noticed by' 'in schedule'
for name in "${names[@]}"; do
  patch=$top/$races/$name.patch
  read -r suite test < <(field 'Noticed by' "$patch")
  case $suite in
    locks) build=(--package quorlock-threads --test locks) ;;
    *) build=(--package quorlock --package quorlock-redis --no-default-features --lib) ;;
  esac
  (cd "$copy" && patch --silent --fuzz=0 -p1 <"$patch")
  log=$target/planted-$name.log
  if ! (cd "$copy" && cargo test --quiet "${build[@]}" --no-run) >"$log" 2>&1; then
    echo "$name does not compile: $log" >&2; exit 1
  fi
  if (cd "$copy" && cargo test --quiet "${build[@]}" --no-fail-fast -- --nocapture --test-threads 1 "$test") >"$log" 2>&1; then
    printf '%-42s %-62s %s\n' "$name" "$test" "NOT NOTICED in $most"
    missed=1
  else
    schedule=$(sed -n "s/.*failed in schedule \([0-9]*\),.*/\1/p" "$log" | head -1)
    printf '%-42s %-62s %s\n' "$name" "$test" "${schedule:-? (see $log)}"
  fi
  (cd "$copy" && patch --silent --reverse --fuzz=0 -p1 <"$patch")
done
exit "$missed"
