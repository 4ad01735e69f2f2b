#!/usr/bin/env bash
# Tests what researchers use: executors on processes, Dask and Slurm, and the notebook with the figures of the book:
# crates/quorlock-python/research/test.sh [PYTEST ARGUMENTS]
#
# It needs Python 3.11 or later, the wheel that crates/quorlock-python/test.sh has built last, and the program quorlock-sim: QUORLOCK_SIM, by
# default that of a debug build. The first time, pip installs Dask, submitit and Jupyter's kernel. The test of Slurm starts a cluster of
# its own on this machine as root (Debian: apt-get install slurm-wlm munge); without one it says so. QUORLOCK_NOTEBOOK_RUNS is the number of
# runs of the notebook's cells: with 1000 its shares must be those of the book. The 60 that it has otherwise take four minutes of processor time
# with a debug build, most of them for the studies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

target=$(realpath --no-symlinks "${CARGO_TARGET_DIR:-../../../target}")
export QUORLOCK_SIM=${QUORLOCK_SIM:-$target/debug/quorlock-sim}
[ -x "$QUORLOCK_SIM" ] || { echo "there is no $QUORLOCK_SIM: cargo build -p quorlock-sim-lab" >&2; exit 1; }
wheels=("$target"/python/wheels/*.whl)
[ -f "${wheels[0]}" ] || { echo "there is no wheel: run crates/quorlock-python/test.sh first" >&2; exit 1; }
place=$target/python/research
if ! cmp --silent requirements.txt "$place/requirements"; then
  rm -rf "$place"
  "${PYTHON:-python3}" -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
  cp requirements.txt "$place/requirements"
fi
"$place/bin/pip" install --quiet --disable-pip-version-check --no-index --force-reinstall "${wheels[0]}"
"$place/bin/python" -m pytest --quiet -p no:cacheprovider -r s "$@" .
