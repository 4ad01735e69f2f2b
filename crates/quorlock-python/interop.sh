#!/usr/bin/env bash
# Lets the wheel, the Rust library, the client of the protocol's page and Redisson take turns under one lock, on one server and on three:
# crates/quorlock-python/interop.sh [PYTEST ARGUMENTS]
#
# It tests the wheel that test.sh has installed last, beside the classes that tests/interop/run.sh has compiled. BESIDE is the example
# `beside` of quorlock-tests, by default that of a debug build. PYTHON is the interpreter, python3 by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

version=$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
target=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-../../target}")
export BESIDE=${BESIDE:-$target/debug/examples/beside}
python=$target/python/$version/bin/python
[ -x "$python" ] || { echo "there is no $python: run crates/quorlock-python/test.sh first" >&2; exit 1; }
[ -x "$BESIDE" ] || { echo "there is no $BESIDE: cargo build -p quorlock-tests --example beside" >&2; exit 1; }
compgen -G "../../tests/interop/redisson/target/*/classpath" >/dev/null || { echo "Redisson is not compiled: run tests/interop/run.sh first" >&2; exit 1; }
cd tests
"$python" -m pytest --quiet -p no:cacheprovider -m redisson test_interop.py "$@"
