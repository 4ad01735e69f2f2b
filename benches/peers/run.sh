#!/usr/bin/env bash
# Measures Quorlock beside its own bare scripts and beside rslock, rlock, redsync, Redisson and node-redlock:
# tests/peers/run.sh [--quick] [WORK]..., or tests/peers/run.sh --help for all options.
#
# Each library runs in a separate program: Rust in ./rust, Go in ./redsync, the JVM in ./redisson, Node.js in
# ./node-redlock. This script builds them from their registries. If a language is missing, its library is left out, with a
# message. Servers are started on free ports of the loopback interface, and stopped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
built=$(cd ../.. && pwd)/target/peers

step() { printf '== %s\n' "$*" >&2; }

fail() {
  printf 'tests/peers/run.sh: %s\n' "$*" >&2
  exit 1
}

for argument in "$@"; do
  case $argument in
    -h | --help | --list) exec cargo run --quiet --profile test --package quorlock-tests --example peers -- "$@" ;;
  esac
done

command -v cargo >/dev/null || fail "cargo is not on the PATH: install Rust and start again"
command -v redis-server >/dev/null || fail "redis-server is not on the PATH: ./test.sh installs it"

left_out=()
# lacks COMMAND LIBRARY PACKAGE: succeeds if the command is missing, and notes that the library is left out.
lacks() {
  command -v "$1" >/dev/null && return 1
  printf 'left out: %s, because %s is missing (Debian: apt-get install %s)\n' "$2" "$1" "$3" >&2
  left_out+=("$2")
}

step "quorlock, rslock, rlock"
# rlock needs a newer compiler than Quorlock.
CARGO_TARGET_DIR="$built" cargo build --quiet --release --locked --manifest-path rust/Cargo.toml

if ! lacks go redsync golang-go; then
  step "redsync"
  (cd redsync && go build -o "$built/redsync" .)
fi
if ! lacks npm node-redlock npm; then
  step "node-redlock"
  (cd node-redlock && npm ci --silent --no-audit --no-fund)
fi
if ! lacks mvn redisson maven; then
  step "redisson"
  mvn --batch-mode --quiet --file redisson/pom.xml process-classes >&2
fi

arguments=("$@")
if [ ${#left_out[@]} -gt 0 ] && [[ " $* " != *" --peer"* ]]; then
  for peer in quorlock control bare rslock rlock redsync redisson node-redlock; do
    [[ " ${left_out[*]} " == *" $peer "* ]] || arguments+=(--peer "$peer")
  done
fi
step "measuring"
cd ../..
exec cargo run --quiet --profile test --package quorlock-tests --example peers -- "${arguments[@]}"
