"""Shards of an exploration on executors: processes of this machine, Dask, and Slurm."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest
import slurm
from distributed import Client, LocalCluster

from quorlock import sim

OPTIONS: sim.Options = {"variant": "published", "faults": "all", "duration": "1s"}
SEEDS = range(40)


@pytest.fixture(scope="module")
def alone() -> sim.Exploration:
    """What one call of the program finds."""
    found = sim.explore(SEEDS, **OPTIONS)
    assert 0 < len(found.failures)
    return found


def same(one: sim.Exploration, other: sim.Exploration) -> bool:
    return (one.runs, one.holds, one.violated, one.failures) == (other.runs, other.holds, other.violated, other.failures)


def test_processes_find_the_same(alone: sim.Exploration) -> None:
    with ProcessPoolExecutor(2) as processes:
        assert same(alone, sim.explore(SEEDS, executor=processes, shards=3, jobs=1, **OPTIONS))


def test_workers_of_dask_find_the_same(alone: sim.Exploration) -> None:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        assert same(alone, sim.explore(SEEDS, executor=client, shards=3, jobs=1, **OPTIONS))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Slurm]:
    if lacks := slurm.missing():
        pytest.skip(lacks)
    made = slurm.Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.end()


def test_jobs_of_slurm_find_the_same(
    cluster: slurm.Slurm, alone: sim.Exploration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import submitit

    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    executor = submitit.SlurmExecutor(folder=tmp_path, python=sys.executable, max_num_timeout=0)
    executor.update_parameters(time=5, cpus_per_task=1, use_srun=False)
    found = sim.explore(SEEDS, executor=executor, shards=3, jobs=1, **OPTIONS)
    assert same(alone, found)
    assert len(list(tmp_path.glob("*_result.pkl"))) == 3
