#!/usr/bin/env bash
# Checks a release beyond ./test.sh: tests/release.sh [--publish-dry-run]
#
# Packages every crate and compiles the packages; builds and installs what a release has for this machine (Linux only); checks the
# licences and sources of all dependencies, each combination of features, the workflow files, the files for Kubernetes, and the
# book. At the end the script names the missing tools, with the command that
# installs each, and then exits with 2, because something was not checked.
#
# With --publish-dry-run it also runs `cargo publish --dry-run`, which needs a network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  '' | --publish-dry-run) ;;
  *) echo "unknown argument: $1; usage: tests/release.sh [--publish-dry-run]" >&2; exit 64 ;;
esac

step() { printf '\n== %s\n' "$*"; }

missing=()
# has PROGRAM INSTALL...: succeeds if the program is installed; otherwise notes the command that installs it.
has() {
  local program=$1
  shift
  command -v "$program" >/dev/null && return 0
  missing+=("$program: $*")
  return 1
}

step "packages"
tests/packages.sh
for package in target/package/*.crate; do
  # The list is complete before it is searched: `grep -q` ends at the first match, and `tar` would fail at a closed pipe.
  files=$(tar -tzf "$package")
  for licence in LICENSE-MIT LICENSE-APACHE README.md; do
    grep -q "/$licence$" <<<"$files" || { echo "$package has no $licence" >&2; exit 1; }
  done
  printf '%s: %s files, %s bytes\n' "$(basename "$package")" "$(wc -l <<<"$files")" "$(stat -c %s "$package")"
done
if [ "${1:-}" = --publish-dry-run ]; then
  cargo publish --quiet --workspace --dry-run
fi

step "what is installed"
all=yes
has musl-gcc apt-get install -y musl-tools || all=
has protoc apt-get install -y protobuf-compiler libprotobuf-dev || all=
has buildah apt-get install -y buildah || all=
has debootstrap apt-get install -y debootstrap || all=
has redis-server apt-get install -y redis-server || all=
has jq apt-get install -y jq || all=
has man apt-get install -y man-db || all=
has cargo-deb cargo install --locked cargo-deb || all=
has cargo-cyclonedx cargo install --locked cargo-cyclonedx || all=
if [ -n "$all" ]; then
  tests/install.sh
fi

step "licences, bans, sources"
if has cargo-deny cargo install --locked cargo-deny; then
  cargo deny --all-features check licenses bans sources
fi

step "every combination of features"
if has cargo-hack cargo install --locked cargo-hack; then
  cargo hack check --quiet --feature-powerset --no-dev-deps -p quorlock-redis -p quorlock-store -p quorlock -p quorlock-cli
fi

step "workflows"
if has actionlint go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; then
  actionlint
  echo "no errors"
fi

step "files for Kubernetes"
if has kubernetes-validate pipx install kubernetes-validate; then
  kubernetes-validate --strict packaging/kubernetes/*.yaml
fi

step "the book"
if has mdbook cargo install --locked mdbook; then
  mdbook build --dest-dir ../target/book docs
fi
cargo test --quiet -p quorlock-tests --test pure -- links

if [ ${#missing[@]} -gt 0 ]; then
  printf '\nnot checked, because a program is missing:\n' >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 2
fi
step "ready for a release"
