#!/usr/bin/env bash
# Makes groups fail over while clients lock names on majorities of them:
# tests/failovers.sh [--minutes N] [--seed N] [--one-cluster | --long-stops]
#
# The groups are a cluster of three primaries and three replicas, a Sentinel group and a server, all real processes on the
# loopback interface. Clients lock names on a majority of the cluster's shards, and on a majority of the cluster, the
# group and the server. Meanwhile primaries are killed (one, or a majority of them), stopped, or replaced by replicas that
# lag, and slots are moved. A line every ten seconds reports the progress. The exit code is 1 if two guards were held at
# the same time.
#
# With --one-cluster, the names are locked on the cluster itself, which gives one lock to two holders
# (docs/src/deployments.md). The script then counts these cases, and exits with 0. With --long-stops, primaries of
# majorities are stopped for longer than the longest lease, which majorities do not survive. The default is three minutes;
# the figure on that page is from an hour. The script needs redis-server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v redis-server >/dev/null || { echo "redis-server is missing (Debian: apt-get install redis-server)" >&2; exit 2; }
exec cargo run --quiet -p quorlock-tests --example failovers -- "$@"
