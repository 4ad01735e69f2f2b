#!/usr/bin/env bash
# Installs the servers of the stores from Debian, and runs the tests of all stores on them: tests/stores.sh
#
# Each test starts a server of its own in a temporary folder, on a free port, and ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=()
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
[[ -x /usr/sbin/mariadbd ]] || missing+=(mariadb-server)
if ((${#missing[@]})); then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
export QUORLOCK_REQUIRE_POSTGRES=1 QUORLOCK_REQUIRE_MYSQL=1
cargo test --package quorlock-store --all-features "$@"
cargo test --package quorlock-cli --all-features --test command table "$@"
