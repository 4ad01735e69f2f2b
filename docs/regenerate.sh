#!/usr/bin/env bash
# Writes every figure of the documents anew, from what commands print: docs/regenerate.sh [NAME[,NAME]...]
#
# Results go to docs/results, pages are filled from there. Without a name all commands are run; with names only these, and the
# quick ones: exhaustive, conformance, matrix (with the page of what still breaks), speed, locks. It needs redis-server, and a
# machine that does nothing else for speed and locks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

began=$SECONDS
# First, because speed and locks are measured: nothing is compiled between.
cargo build --quiet --profile dist -p quorlock-sim
cargo bench --quiet --no-run -p quorlock-tests --bench locks
cargo test --quiet --no-run -p quorlock-tests --test exhaustive --test servers
printf 'compiled in %s s\n' $((SECONDS - began))
QUORLOCK_FIGURES="${1:-all}" cargo test --quiet -p quorlock-sim --test figures pages_say -- --nocapture
# The picture of the README.
sim() { cargo run --quiet --profile dist -p quorlock-sim -- "$@"; }
small=$(mktemp)
sim shrink Q5 --case published -o "$small" >/dev/null
sim report "$small" --svg -o docs/src/scenarios/q5-published.svg >/dev/null
rm "$small"
# What was written is what the tests want.
cargo test --quiet -p quorlock-sim --test figures --test breaks_page
printf 'all figures written in %s s\n' $((SECONDS - began))
