#!/usr/bin/env bash
# Checks the spelling of the pages: docs/spelling.sh
#
# It needs aspell with a British dictionary (Debian: apt-get install aspell aspell-en), and leaves out code, addresses and hashes. Names, and
# words that the dictionary lacks, are in docs/words.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t pages < <(git ls-files '*.md')
unknown=
for page in "${pages[@]}"; do
  words=$(perl -0pe 's/^```.*?^```//gms; s/`[^`]*`//g; s/\]\([^)]*\)/]/g; s/<[^>]*>//g; s!https?://\S+!!g; s/\b(?=[a-f]*\d)[0-9a-f]{7,40}\b//g' "$page" |
    aspell list --mode=none -d en_GB-ize --personal="$PWD/docs/words.txt" | sort -u | paste -sd ' ')
  [ -z "$words" ] || unknown+="$page: $words"$'\n'
done
if [ -n "$unknown" ]; then
  printf 'unknown words (docs/words.txt has names, and words that the dictionary lacks):\n%s' "$unknown" >&2
  exit 1
fi
printf '%s pages: every word is known\n' "${#pages[@]}"
