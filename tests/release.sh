#!/usr/bin/env bash
# What a release needs, beside ./test.sh: tests/release.sh [--publish-dry-run]
#
# Packages every crate and compiles what was packed, checks licences and sources of everything that is used, each combination of
# features, the workflow files, and the book. Tools that are missing are named at the end, with the command that installs them,
# and the script ends with 2: what was not checked is not said to be right.
#
# --publish-dry-run asks the registry as well, which needs a network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  '' | --publish-dry-run) ;;
  *) echo "unknown: $1 (tests/release.sh [--publish-dry-run])" >&2; exit 64 ;;
esac

step() { printf '\n== %s\n' "$*"; }

missing=()
# has PROGRAM INSTALL...: whether it is there.
has() {
  local program=$1
  shift
  command -v "$program" >/dev/null && return 0
  missing+=("$program: $*")
  return 1
}

step "packages"
# A package is compiled from what was packed, so a file that was left out is noticed.
cargo package --quiet --workspace --allow-dirty --exclude quorlock-tests --exclude quorlock-explore --exclude quorlock-shop --exclude quorlock-threads
for package in target/package/*.crate; do
  for licence in LICENSE-MIT LICENSE-APACHE README.md; do
    tar -tzf "$package" | grep -q "/$licence$" || { echo "$package has no $licence" >&2; exit 1; }
  done
  printf '%s: %s files, %s bytes\n' "$(basename "$package")" "$(tar -tzf "$package" | wc -l)" "$(stat -c %s "$package")"
done
if [ "${1:-}" = --publish-dry-run ]; then
  cargo publish --quiet --workspace --dry-run
fi

step "licences, bans, sources"
if has cargo-deny cargo install --locked cargo-deny; then
  cargo deny --all-features check licenses bans sources
fi

step "every combination of features"
if has cargo-hack cargo install --locked cargo-hack; then
  cargo hack check --quiet --feature-powerset --no-dev-deps -p quorlock-redis -p quorlock -p quorlock-cli -p quorlock-sim
fi

step "workflows"
if has actionlint go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; then
  actionlint
  echo "no complaint"
fi

step "the book"
if has mdbook cargo install --locked mdbook; then
  mdbook build --dest-dir ../target/book docs
fi
cargo test --quiet -p quorlock-tests --test links

if [ ${#missing[@]} -gt 0 ]; then
  printf '\nnot checked, because a program is missing:\n' >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 2
fi
step "ready for a release"
