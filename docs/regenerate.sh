#!/usr/bin/env bash
# Writes every figure of the documents again, from the output of commands: docs/regenerate.sh [NAME[,NAME]...]
# or takes rates and studies from what sim/reproduce.sh has measured: docs/regenerate.sh --reproduced DIR
#
# Results go to docs/results, and the pages are filled from them. Without a name, all commands run. With names, the named
# commands and the quick ones run. Names: exhaustive, conformance, matrix (with the page of what still breaks),
# matrix-stores, speed, locks. It needs redis-server, and for speed and locks a machine that does nothing else. The matrix is taken from the folder that
# QUORLOCK_MATRIX names, if it is set: `quorlock-sim matrix --commit HASH --examples --out FOLDER --results FOLDER/results`. So is
# matrix-stores from that of QUORLOCK_MATRIX_STORES.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  --reproduced)
    from=$2
    cp "$from"/rates.jsonl docs/results/
    cp "$from"/{drift,own-algorithm,own-algorithm-pairs,pauses,restarts}.csv docs/results/studies/
    cp "$from"/*.svg docs/src/studies/
    printf '{ "command": "sim/reproduce.sh", "commit": "%.10s" }\n' "$(cat "$from/commit")" >docs/results/studies.json
    QUORLOCK_FIGURES=quick exec cargo test --quiet -p quorlock-sim-lab --test pages pages_say ;;
  -*) sed -n '2,10s/^# \{0,1\}//p' docs/regenerate.sh; [[ $1 == -h || $1 == --help ]]; exit ;;
esac

began=$SECONDS
# Built first, because nothing may be compiled while speed and locks are measured.
cargo build --quiet --profile dist -p quorlock-sim-lab
cargo bench --quiet --no-run -p quorlock-bench --bench locks
cargo test --quiet --no-run -p quorlock-exhaustive -p quorlock-tests --test exhaustive --test servers
printf 'compiled in %s s\n' $((SECONDS - began))
QUORLOCK_FIGURES="${1:-all}" cargo test --quiet -p quorlock-sim-lab --test pages pages_say -- --nocapture
# The picture of the README.
sim() { cargo run --quiet --profile dist -p quorlock-sim-lab -- "$@"; }
small=$(mktemp)
sim shrink Q5 --case published -o "$small" >/dev/null
sim report "$small" --svg -o docs/src/scenarios/q5-published.svg >/dev/null
rm "$small"
# The diagrams of the book.
for plan in docs/src/diagrams/*.toml; do
  sim report "$plan" --svg -o "${plan%.toml}.svg" >/dev/null
done
# Checks that the tests accept what was written.
cargo test --quiet -p quorlock-sim-lab --test pages
printf 'wrote all figures in %s s\n' $((SECONDS - began))
