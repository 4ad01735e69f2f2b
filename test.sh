#!/usr/bin/env bash
# Runs every check of the project: ./test.sh [--interop] [--versions]
#
# The tests against real servers need the program `redis-server`. If it is missing, this script installs it with the
# system's package manager; plain `cargo test` lists those tests as ignored instead. Each test starts its own servers on
# free ports of the loopback interface, and stops them. The driver of etcd is compiled with `protoc`, which is installed in the
# same way.
#
# --interop also tests the locks beside Redisson, which needs a JDK and Maven (tests/interop/run.sh).
# --versions runs the server tests on Redis 5, 6, 8 and Valkey 8, 9 as well (tests/versions.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

interop= versions=
for argument in "$@"; do
  case $argument in
    --interop) interop=yes ;;
    --versions) versions=yes ;;
    *) echo "unknown argument: $argument; usage: ./test.sh [--interop] [--versions]" >&2; exit 64 ;;
  esac
done

step() { printf '\n== %s\n' "$*"; }

# Runs a command as root, with sudo if necessary and possible.
privileged() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    printf 'this needs root or sudo: %s\n' "$*" >&2
    return 1
  fi
}

install_redis() {
  if command -v apt-get >/dev/null; then
    privileged apt-get update -qq
    privileged env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server
  elif command -v dnf >/dev/null; then
    privileged dnf install -y -q redis || privileged dnf install -y -q valkey-compat-redis
  elif command -v apk >/dev/null; then
    privileged apk add --quiet redis
  elif command -v pacman >/dev/null; then
    privileged pacman -S --noconfirm --needed redis
  elif command -v zypper >/dev/null; then
    privileged zypper --non-interactive --quiet install redis
  elif command -v brew >/dev/null; then
    brew install --quiet redis
  else
    return 1
  fi
}

install_protoc() {
  if command -v apt-get >/dev/null; then
    privileged apt-get update -qq
    privileged env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends protobuf-compiler libprotobuf-dev
  elif command -v dnf >/dev/null; then
    privileged dnf install -y -q protobuf-compiler protobuf-devel
  elif command -v apk >/dev/null; then
    privileged apk add --quiet protobuf-dev
  elif command -v pacman >/dev/null; then
    privileged pacman -S --noconfirm --needed protobuf
  elif command -v zypper >/dev/null; then
    privileged zypper --non-interactive --quiet install protobuf-devel
  elif command -v brew >/dev/null; then
    brew install --quiet protobuf
  else
    return 1
  fi
}

if ! command -v protoc >/dev/null; then
  step "installing protoc"
  install_protoc || true
  if ! command -v protoc >/dev/null; then
    echo "protoc could not be installed: put it on the PATH and start again" >&2
    exit 1
  fi
fi

if ! command -v redis-server >/dev/null; then
  step "installing redis-server"
  install_redis || true
  if ! command -v redis-server >/dev/null; then
    echo "redis-server could not be installed: put it on the PATH and start again" >&2
    exit 1
  fi
fi
export QUORLOCK_REQUIRE_REDIS=1

step "tools"
redis-server --version
cargo --version

step "docker-compose.yml"
if docker compose version >/dev/null 2>&1; then
  docker compose --profile sentinel config --quiet
  echo "valid, according to docker compose"
elif command -v docker-compose >/dev/null; then
  docker-compose --profile sentinel config --quiet
  echo "valid, according to docker-compose"
else
  echo "not checked: neither docker compose nor docker-compose is installed"
fi

step "cargo fmt --check"
cargo fmt --all --check

step "spelling of the pages"
if command -v aspell >/dev/null && aspell dicts | grep -x en_GB-ize >/dev/null; then
  docs/spelling.sh
else
  echo "not run: aspell, or its British dictionary, is missing"
fi

# All that follows uses the programs that this step builds, so that nothing is compiled twice.
step "cargo test --no-run"
cargo test --quiet --workspace --all-features --no-run

checks=$(mktemp) waits=$(mktemp)
trap 'rm -f "$checks" "$waits"' EXIT
# Tests mostly wait, and compilers compute: they run beside each other.
(
  # The first, because it has a folder of its own: the tests start meanwhile.
  step "threads: schedules, and the patches of known races"
  tests/threads.sh
  tests/threads/planted.sh --check

  step "cargo clippy"
  cargo clippy --quiet --workspace --all-targets --all-features -- -D warnings
  cargo clippy --quiet --package quorlock -- -D warnings
  cargo clippy --quiet --package quorlock --no-default-features -- -D warnings

  step "cargo doc"
  RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --all-features

  # Uses what clippy compiled.
  step "packages"
  tests/packages.sh

  # The benchmark sends the scripts' arguments without the adapter: short cases show that they still fit.
  step "cargo bench, short cases"
  cargo test --quiet --workspace --all-features --bench locks -- --quick --peer bare --peer quorlock acquire

  step "campaigns on seeds of this commit"
  sim/commit-seeds.sh "${CARGO_TARGET_DIR:-target}/debug/quorlock-sim"

  # What mostly waits for processes and leases, beside each other.
  (
    # Runs all faults at once, with servers that forget, on three servers. Published Redlock must break in the same time.
    step "chaos on real servers, a minute"
    "${CARGO_TARGET_DIR:-target}/debug/quorlock-sim" chaos --class "all at once, amnesia" --minutes 1 --seed 1

    step "the protocol, with a client in Python"
    if command -v python3 >/dev/null; then
      BESIDE=$(realpath "${CARGO_TARGET_DIR:-target}/debug/examples/beside") tests/protocol/run.sh
    else
      echo "not run: python3 is missing"
    fi

    step "the Python package: its wheel, in an empty environment"
    if python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      crates/quorlock-python/test.sh
    else
      echo "not run: Python 3.10 or later with venv and pip is missing"
    fi
  ) >"$waits" 2>&1 &
  passed=yes
  if [ -n "$interop" ]; then
    tests/interop/run.sh || passed=no
  fi
  wait $! || passed=no
  cat "$waits"
  if [ -n "$interop" ]; then
    step "Rust, the Python package and Redisson under one lock"
    BESIDE=$(realpath "${CARGO_TARGET_DIR:-target}/debug/examples/beside") crates/quorlock-python/interop.sh || passed=no
  fi
  [ $passed = yes ]
) >"$checks" 2>&1 &

step "cargo test (beside threads, clippy, doc, packages, the short benchmark, campaigns, chaos, and other clients)"
passed=yes
cargo test --workspace --all-features --no-fail-fast || passed=no
wait $! || passed=no
cat "$checks"
[ $passed = yes ] || exit 1

if [ -n "$versions" ]; then
  step "other versions of Redis, and Valkey"
  tests/versions.sh
fi

step "all checks passed"
