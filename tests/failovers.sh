#!/usr/bin/env bash
# Has majorities of groups fail over, for as long as you like: tests/failovers.sh [--minutes N] [--seed N] [--one-cluster | --long-stops]
#
# A cluster of three primaries and three replicas, a Sentinel group and a server, all real processes on the loopback interface. Clients
# lock names on a majority of the cluster's shards, and on a majority of the cluster, the group and the server, while primaries are killed
# (one, or a majority of them), stopped, replaced by replicas that lag, and slots are moved. A line every ten seconds says how it goes. It ends with
# 1 if two guards said at the same time that they were held. With --one-cluster the names are locked on the cluster itself, which
# docs/src/deployments.md says gives one lock to two holders: there it counts them, and ends with 0. An hour is the figure of that page; the default
# is three minutes. It needs redis-server. With --long-stops primaries of majorities are stopped for longer than the longest lease, which is what remains.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v redis-server >/dev/null || { echo "redis-server is missing (Debian: apt-get install redis-server)" >&2; exit 2; }
exec cargo run --quiet -p quorlock-tests --example failovers -- "$@"
