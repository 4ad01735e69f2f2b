#!/usr/bin/env bash
# Tests the locks against Redisson on the JVM, in both directions: tests/interop/run.sh [FILTER]
#
# FILTER is a part of the names of tests. The script needs a JDK (17 or newer), Maven, redis-server and cargo. Maven
# downloads the versions of Redisson that are listed in redisson/versions. Servers are started on free ports of the
# loopback interface, and stopped. The script prints the outcome of each case, by lock and direction. Without FILTER it
# also runs a storm of pauses on real servers, with clients of both libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

step() { printf '\n== %s\n' "$*"; }

fail() {
  printf 'tests/interop/run.sh: %s\n' "$*" >&2
  exit 1
}

needs() {
  command -v "$1" >/dev/null || fail "there is no $1 on the PATH: install $2 and start again"
}

needs javac "a JDK, 17 or newer (Debian: default-jdk-headless)"
needs java "a JDK, 17 or newer (Debian: default-jdk-headless)"
needs mvn "Maven (Debian: maven)"
needs redis-server "Redis (./test.sh does)"
needs cargo "Rust"
jdk=$(javac -version 2>&1)
major=${jdk#javac }
major=${major%%[.-]*}
[ "$major" -ge 17 ] 2>/dev/null || fail "a JDK of version 17 or newer is needed, not: $jdk"

mapfile -t versions <redisson/versions
for version in "${versions[@]}"; do
  step "Redisson $version, through Maven (the first time this downloads some 50 MB)"
  if ! said=$(mvn --batch-mode --quiet --file redisson/pom.xml -Dredisson.version="$version" process-classes 2>&1); then
    printf '%s\n' "$said"
    fail "Maven could not get or compile it. Without a network it has only what it got before"
  fi
done

step "cargo test --test interop"
cd ../..
QUORLOCK_REQUIRE_REDISSON=1 cargo test --workspace --all-features --test interop -- "$@"

if [ $# = 0 ]; then
  step "a storm in which every second client is Redisson's, and its control"
  # Builds the command, unless ./test.sh has done so.
  cargo test --quiet --workspace --all-features --no-run --test chaos
  "${CARGO_TARGET_DIR:-target}/debug/quorlock-sim" chaos --class "client pauses" --beside redisson --minutes 0.7 --seed 7
fi
