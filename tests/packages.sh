#!/usr/bin/env bash
# Packages every crate and checks the crates as they are in their packages: tests/packages.sh
#
# This fails if a package lacks a file that its crate needs, or a crate needs one that is not published. The packages are
# unpacked into a workspace of their own, where each crate takes the others from there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-target}")
unpublished=(quorlock-bench quorlock-python quorlock-tests quorlock-testbed quorlock-sim-lab quorlock-explore quorlock-exhaustive quorlock-seats quorlock-shop quorlock-threads)
rm -f "$target"/package/*.crate
cargo package --quiet --workspace --allow-dirty --no-verify "${unpublished[@]/#/--exclude=}"

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
{
  printf '[workspace]\nresolver = "3"\nmembers = ["*-[0-9]*"]\n\n[patch.crates-io]\n'
  for package in "$target"/package/*.crate; do
    # All files of all packages have one date, by which Cargo would take an earlier run's for these.
    tar -xzmf "$package" -C "$unpacked"
    folder=$(basename "$package" .crate)
    printf '%s = { path = "%s" }\n' "${folder%-[0-9]*}" "$folder"
  done
} >"$unpacked/Cargo.toml"
cp Cargo.lock "$unpacked/"
cd "$unpacked"
CARGO_TARGET_DIR=$target cargo check --quiet --workspace --all-features
