#!/usr/bin/env bash
# Runs every fuzz target for a while: fuzz/run.sh [--minutes N] [TARGET ..]
#
# It needs a nightly compiler and cargo-fuzz, and reports which of them is missing. The targets run one after another, on
# one core, for N minutes each (default: 1), with at most 2 GB of memory, 10 s for an input and 100 million inputs. New
# inputs go to fuzz/target/found/TARGET, and an input that breaks a promise goes to fuzz/artifacts/TARGET. The corpora in
# fuzz/corpus are read, not written; plain `cargo test` runs all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

minutes=1
targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --minutes)
      minutes=${2:-}
      [[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || { echo "--minutes needs a number from 1 to 9999" >&2; exit 64; }
      shift 2 ;;
    -*) echo "unknown argument: $1; usage: fuzz/run.sh [--minutes N] [TARGET ..]" >&2; exit 64 ;;
    *)
      [ -f "targets/$1.rs" ] || { echo "there is no target $1, only $(cd targets && echo *.rs)" >&2; exit 64; }
      targets+=("$1")
      shift ;;
  esac
done
if [ ${#targets[@]} = 0 ]; then
  for file in targets/*.rs; do
    file=${file##*/}
    targets+=("${file%.rs}")
  done
fi

cargo +nightly --version >/dev/null 2>&1 || {
  echo "a nightly compiler is missing: rustup toolchain install nightly" >&2
  exit 1
}
cargo +nightly fuzz --version >/dev/null 2>&1 || {
  echo "cargo-fuzz is missing: cargo install cargo-fuzz" >&2
  exit 1
}

for target in "${targets[@]}"; do
  printf '\n== %s\n' "$target"
  mkdir -p "target/found/$target"
  cargo +nightly fuzz run --fuzz-dir . "$target" "target/found/$target" "corpus/$target" -- \
    -max_total_time=$((minutes * 60)) -runs=100000000 -rss_limit_mb=2048 -timeout=10 -max_len=4096 -print_final_stats=1
done
