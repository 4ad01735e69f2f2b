"""Simulations, with the real program."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from quorlock import sim

pytestmark = pytest.mark.simulator


def test_a_run_is_repeated_by_its_seed() -> None:
    first = sim.run(seed=3, lock="redlock", faults="inside", duration="1s")
    assert first.holds
    assert sim.run(seed=3, lock="redlock", faults="inside", duration="1s").trace == first.trace
    assert sim.run(seed=4, lock="redlock", faults="inside", duration="1s").trace != first.trace
    operations = {row["operation"] for row in first.history}
    assert {"acquire", "grant"} <= operations
    assert all(0 <= row["invoke"] <= row["complete"] for row in first.history if row["complete"] is not None)
    assert len(first.faults) == len(first.plan["faults"])


def test_a_scenario_and_a_plan_in_a_file_are_run(tmp_path: Path) -> None:
    scenario = sim.run("Q5")
    assert scenario.plan["lock"] == "redlock"
    with pytest.raises(sim.SimulatorError, match="no-such-plan"):
        sim.run(tmp_path / "no-such-plan.toml")


def test_failures_are_rows_and_shards_find_the_same() -> None:
    whole = sim.explore(range(40), variant="published", faults="all", duration="1s")
    assert whole.runs == 40
    assert 0 < len(whole.failures) == sum(whole.violated.values())
    row = whole.failures[0]
    assert not sim.run(seed=row["seed"], variant="published", faults="all", duration="1s").holds
    assert row["story"] and 0 < row["at"]
    with ThreadPoolExecutor(2) as threads:
        parts = sim.explore(range(40), executor=threads, shards=3, variant="published", faults="all", duration="1s")
    assert (parts.runs, parts.violated, list(parts.failures)) == (whole.runs, whole.violated, list(whole.failures))
    with ProcessPoolExecutor(1) as processes:
        assert sim.explore(range(5), executor=processes, faults="none", duration="1s").failures == []
    assert [one["runs"] for one in whole.rows()] == [count for _, count in sorted(whole.violated.items())]


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(sim.SimulatorError, match="not a variant"):
        sim.run(seed=1, variant="nonsense")
    with pytest.raises(ValueError, match="consecutive"):
        sim.explore(range(0, 10, 2))


def test_tables_are_frames() -> None:
    history = sim.run(seed=3, duration="1s").history
    polars, pandas = history.to_polars(), history.to_pandas()
    assert polars.shape == pandas.shape == (len(history), len(history[0]))
    assert polars["operation"].to_list() == list(pandas["operation"]) == [row["operation"] for row in history]
    assert sim.Table().to_polars().shape == sim.Table().to_pandas().shape == (0, 0)
