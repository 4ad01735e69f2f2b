#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment, and tests it there: crates/quorlock-python/test.sh [--release] [-- PYTEST ARGUMENTS]
#
# Some tests need programs of the workspace, which ./test.sh builds before: QUORLOCK_SIM (cargo build -p quorlock-sim-lab), and BESIDE
# (cargo build -p quorlock-tests --example beside). By default they are those of a debug build.
#
# It needs Python 3.10 or later with venv and pip, which installs maturin, a redis-server, and protoc, with which the driver of etcd is
# compiled: .ci/run installs them on Debian. Other stores are tested where tests/stores.sh has installed them. PYTHON is the interpreter
# that the wheel is tested with, python3 by default; it may be 3.9. The environments and the wheel are in the folder of Cargo's target,
# and the first ones are made again only when the requirements change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

profile=dev
if [ "${1:-}" = --release ]; then
  profile=release
  shift
fi
[ "${1:-}" != -- ] || shift
python=${PYTHON:-python3}
target=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-../../target}")
command -v "${PROTOC:-protoc}" >/dev/null || { echo "protoc is missing (Debian: apt-get install protobuf-compiler libprotobuf-dev)" >&2; exit 1; }
command -v redis-server >/dev/null || { echo "redis-server is missing (Debian: apt-get install redis-server)" >&2; exit 1; }
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
tools=$target/python/tools place=$target/python/$version wheels=$target/python/wheels

# Makes an environment with these requirements, unless it is there.
environment() {
  local folder=$1 interpreter=$2 requirements=$3
  if ! cmp --silent "$requirements" "$folder/requirements"; then
    rm -rf "$folder"
    "$interpreter" -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$folder/requirements"
  fi
}

environment "$tools" python3 tests/tools.txt
rm -rf "$wheels"
CARGO_TARGET_DIR=$target "$tools/bin/maturin" build --quiet --locked --profile "$profile" --out "$wheels" \
  --interpreter "$(command -v "$python")"
wheel=("$wheels"/*.whl)
echo "built ${wheel[0]##*/}, $(du -k "${wheel[0]}" | cut -f1) KiB"

# Nothing but the wheel: it needs no other package.
rm -rf "$place-empty"
"$python" -m venv "$place-empty"
"$place-empty/bin/pip" install --quiet --disable-pip-version-check --no-index "${wheel[0]}"
(cd / && "$place-empty/bin/python" -c '
import quorlock
with quorlock.Locks.embedded() as locks, locks.lock("orders/42") as guard:
    print("an empty environment: locked, with token", guard.token)
')

environment "$place" "$python" tests/requirements.txt
"$place/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall "${wheel[0]}"
export QUORLOCK_SIM=${QUORLOCK_SIM:-$target/debug/quorlock-sim} BESIDE=${BESIDE:-$target/debug/examples/beside}
marks=''
for needed in "simulator $QUORLOCK_SIM" "beside $BESIDE"; do
  if [ ! -x "${needed#* }" ]; then
    echo "not run: tests of the mark ${needed%% *}, because there is no ${needed#* }"
    marks+="${marks:+ and }not ${needed%% *}"
  fi
done
# What has Redisson is compiled later or elsewhere: interop.sh tests it.
marks+="${marks:+ and }not redisson"
# Not in this folder, whose sources have no native part.
tests=$PWD/tests
(cd "$tests" && "$place/bin/python" -m pytest --quiet -r s -p no:cacheprovider -m "$marks" "$@")

# The types of the other packages differ from one Python to the next: they are checked with the newest packages.
if [ "$version" = 3.9 ]; then
  exit
fi
types=("$tools/bin/mypy" --strict --no-error-summary --python-executable "$place/bin/python" --cache-dir "$target/python/mypy")
(cd "$tests" && "${types[@]}" --package quorlock && "${types[@]}" .)
"$tools/bin/pyright" --project pyrightconfig.json --pythonpath "$place/bin/python"
