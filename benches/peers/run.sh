#!/usr/bin/env bash
# Measures Quorlock beside its own bare scripts and beside rslock, rlock, redsync, Redisson and node-redlock:
# benches/peers/run.sh [OPTIONS] [CASE]..., with the options of the harness (--help).
#
# The harness is `cargo bench -p quorlock-bench --bench locks`, which also works with rslock. This script builds the programs
# of the other libraries from their registries: Rust in ./rlock, Go in ./redsync, the JVM in ./redisson, Node.js in
# ./node-redlock. If a language is missing, its library is left out, with a message. Servers are started on free ports of
# the loopback interface, and stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
built=$(cd ../.. && pwd)/target/peers

step() { printf '== %s\n' "$*" >&2; }

fail() {
  printf 'benches/peers/run.sh: %s\n' "$*" >&2
  exit 1
}

harness() {
  cd ../..
  exec cargo bench --quiet -p quorlock-bench --bench locks -- "$@"
}

for argument in "$@"; do
  case $argument in
    -h | --help | --list) harness "$@" ;;
  esac
done

command -v cargo >/dev/null || fail "cargo is not on the PATH: install Rust and start again"
command -v redis-server >/dev/null || fail "redis-server is not on the PATH: ./test.sh installs it"

peers=(quorlock control plain fair reader reader-again reader-of-many bare ping rslock rlock)
# needs COMMAND LIBRARY PACKAGE: fails if the command is missing; otherwise the library takes part.
needs() {
  if command -v "$1" >/dev/null; then
    peers+=("$2")
    step "$2"
  else
    printf 'left out: %s, because %s is missing (Debian: apt-get install %s)\n' "$2" "$1" "$3" >&2
    return 1
  fi
}

step "rlock"
# rlock needs a newer compiler than Quorlock.
CARGO_TARGET_DIR="$built" cargo build --quiet --release --locked --manifest-path rlock/Cargo.toml

if needs go redsync golang-go; then
  (cd redsync && go build -o "$built/redsync" .)
fi
if needs npm node-redlock npm; then
  (cd node-redlock && npm ci --silent --no-audit --no-fund)
fi
if needs mvn redisson maven; then
  mvn --batch-mode --quiet --file redisson/pom.xml process-classes >&2
fi

step "measuring"
if [[ " $* " != *" --peer"* ]]; then
  set -- "$@" "${peers[@]/#/--peer=}"
fi
harness "$@"
