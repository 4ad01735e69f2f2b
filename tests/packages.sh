#!/usr/bin/env bash
# Packages every crate and compiles each from its package: tests/packages.sh
#
# This fails if a package lacks a file that its crate needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Cargo unpacks and compiles a package once for each path and version, and later compiles the others against that, whatever has
# changed since. The folders of packages that come from no registry have names without a host.
rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/{quorlock,redis-sim}*-[0-9]*
deps=${CARGO_TARGET_DIR:-target}/debug/deps
{ grep -ls '/registry/src/-' "$deps"/*.d || true; } | while read -r built; do
  name=$(basename "$built" .d)
  rm -f "$deps/$name".* "$deps/lib$name".*
done

unpublished=(quorlock-bench quorlock-tests quorlock-testbed quorlock-sim-lab quorlock-explore quorlock-exhaustive quorlock-shop quorlock-threads)
cargo package --quiet --workspace --allow-dirty "${unpublished[@]/#/--exclude=}"
