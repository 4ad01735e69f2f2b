#!/usr/bin/env bash
# Builds the wheel of the Python package for one target, into target/release-files/wheel-TARGET: packaging/wheel.sh TARGET
#
#   x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu    manylinux2014: any Linux with glibc 2.17 or later
#   aarch64-apple-darwin                                   macOS 11 or later
#
# It needs Python 3.10 or later with venv and pip, which installs maturin, and Zig for an old glibc; and protoc, with which the driver of
# etcd is compiled. If the target is this machine's, the wheel is installed into an empty environment, where it takes a lock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=${1:?usage: packaging/wheel.sh TARGET}
case $target in
  *-linux-gnu) options=(--compatibility manylinux2014 --zig) ;;
  *-apple-darwin) options=() ;;
  *) echo "unknown target: $target; see packaging/wheel.sh" >&2; exit 64 ;;
esac

mkdir -p "${CARGO_TARGET_DIR:-target}"
targets=$(realpath "${CARGO_TARGET_DIR:-target}")
out=$targets/release-files/wheel-$target
tools=$targets/python/release-tools
rm -rf "$out" "$tools"
python3 -m venv "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check maturin==1.16.0 ziglang==0.13.0.post1

PATH=$tools/bin:$PATH maturin build --quiet --locked --profile wheel --target "$target" --out "$out" \
  --manifest-path crates/quorlock-python/Cargo.toml ${options[@]+"${options[@]}"}

if [ "$target" = "$(rustc -vV | sed -n 's/^host: //p')" ]; then
  python3 -m venv "$targets/python/released"
  "$targets/python/released/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall "$out"/*.whl
  (cd "$out" && "$targets/python/released/bin/python" -c '
import quorlock
with quorlock.Locks.embedded() as locks, locks.lock("orders/42") as guard:
    guard.check()
')
fi

cd "$out"
if command -v sha256sum >/dev/null; then sum=(sha256sum); else sum=(shasum -a 256); fi
"${sum[@]}" -- *.whl >SHA256SUMS
cat SHA256SUMS
