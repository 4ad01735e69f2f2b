#!/usr/bin/env bash
# Tests a client in Python, written from docs/src/protocol.md, with the conformance files and with Quorlock:
# tests/protocol/run.sh [ROUNDS]
#
# Runs every file of docs/protocol on the client. Then the client and Quorlock each add to one counter ROUNDS times
# (default: 200), under a lock on one server and under a lock on a majority of three. Servers are started on free ports of
# the loopback interface, and stopped. The script needs Python 3.8 and redis-server, and takes some seconds after the
# build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

rounds=${1:-200}
[[ $rounds =~ ^[0-9]+$ && $rounds -ge 10 ]] || { echo "the number of rounds must be at least 10: tests/protocol/run.sh 200" >&2; exit 64; }
for program in python3 redis-server; do
  command -v "$program" >/dev/null || { echo "$program is missing (Debian: apt-get install python3 redis-server)" >&2; exit 2; }
done
export PYTHONDONTWRITEBYTECODE=1

# The client of this project: BESIDE, if ./test.sh has built it already.
beside=${BESIDE:-}
if [ -z "$beside" ]; then
  cargo build --quiet --profile test --package quorlock-tests --example beside
  beside=${CARGO_TARGET_DIR:-$(cd ../.. && pwd)/target}/debug/examples/beside
fi

folder=$(mktemp -d)
pids=()
end() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap end EXIT

# Starts a server and sets $port. Another process may take a port after it was found free, so it tries again.
start() {
  local pid dir
  for _ in 1 2 3 4 5; do
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    dir=$(mktemp -d "$folder/XXXXXX")
    redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' --appendonly no >"$dir/log" &
    pid=$!
    for _ in $(seq 200); do
      kill -0 "$pid" 2>/dev/null || break
      if grep -q "Ready to accept connections" "$dir/log"; then
        pids+=("$pid")
        return
      fi
      sleep 0.05
    done
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  echo "redis-server does not start: $(cat "$dir/log")" >&2
  exit 1
}

echo "== files"
start
python3 conform.py "$port"

# contest SERVERS: runs both clients at the same time, on this many servers.
contest() {
  local store ports=() python ours
  start
  store=$port
  for _ in $(seq "$1"); do
    start
    ports+=("$port")
  done
  echo "== Quorlock and the client in Python, $rounds rounds each, servers of the lock: $1"
  timeout 120 python3 beside.py work "$store" "$rounds" "${ports[@]}" &
  python=$!
  timeout 120 "$beside" "$store" "$rounds" "${ports[@]}" &
  ours=$!
  wait "$python"
  wait "$ours"
  python3 beside.py check "$store" "$rounds"
}
contest 1
contest 3
echo "the client in Python follows the protocol"
