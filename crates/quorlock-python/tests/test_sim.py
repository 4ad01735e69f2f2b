"""Simulations, with the real program."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import matplotlib
import pytest

from quorlock import sim

matplotlib.use("Agg")

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


def test_a_rate_has_bounds_and_its_runs_are_rows(tmp_path: Path) -> None:
    deployment, folder = tmp_path / "one.toml", tmp_path / "results"
    deployment.write_text(DEPLOYMENT)
    rate = sim.rate(deployment, runs=200, results=folder)
    assert (rate.horizon, rate.property) == ("30d", "exclusion")
    assert 0 <= rate.lower < rate.upper and rate.runs <= 200
    assert not rate.is_complete
    assert sum(row["runs"] for row in rate.strata) == rate.runs
    assert sum(row["rate"] for row in rate.strata) == pytest.approx(rate.rate)
    results = sim.read_results(folder)
    assert not results.is_complete
    assert results.manifest["law"]["command"] == "rate"
    # Beside the clusters, the plan was run without any strike.
    assert len(results.rows) == rate.runs + 64
    broken = sum(row["verdict"] == "violated" for row in results.rows)
    assert broken == sum(row["broken"] for row in rate.strata)
    with pytest.raises(sim.SimulatorError, match="--resume"):
        sim.rate(deployment, runs=200, results=folder)
    assert sim.rate(deployment, runs=200, results=folder, resume=True).rate == rate.rate
    # A server that is restarted and flushed in every run.
    deployment.write_text(DEPLOYMENT.replace("[[process]]", BREAKS_ALONE + "[[process]]"))
    with pytest.raises(sim.SimulatorError, match="without any fault"):
        sim.rate(deployment, runs=200)


DEPLOYMENT = """
horizon = "30d"
[plan]
lock = "single"
clients = 3
duration = "1s"
[plan.workload]
lease = "200ms"
[[process]]
kind = "crash-node"
each = "node"
rate = "1/d"
restart_after = "5ms"
"""


BREAKS_ALONE = """
[[plan.faults]]
kind = "crash-node"
at = "300ms"
node = 0
restart_after = "5ms"
[[plan.faults]]
kind = "flush"
at = "500ms"
node = 0
"""


def test_results_are_read_as_far_as_they_are_complete(tmp_path: Path) -> None:
    options: sim.Options = {"variant": "published", "faults": "all", "duration": "1s"}
    folder = tmp_path / "results"
    told = sim.command("explore", seeds="0..40", keep_going=True, out=tmp_path / "failures", results=folder, **options)
    results = sim.read_results(folder)
    assert results.is_complete
    assert [row["seed"] for row in results.rows] == list(range(40))
    violated = {name: count["runs"] for name, count in told["cells"][0]["violated"].items()}
    assert {name: sum(row[f"{name}_at"] is not None for row in results.rows) for name in violated} == violated
    assert results.rows.to_pandas()["holds"].sum() == told["cells"][0]["holds"]
    assert results.rows.to_polars().height == 40
    again = sim.run(seed=7, **options)
    assert results.rows[7]["trace"] == again.trace
    assert results.rows[7]["at"] == pytest.approx(sim.seconds(again.verdict["violated"]["at"]))
    # A process that was killed has left the beginning of a frame behind.
    rows = (folder / "rows.jsonl.zst").read_bytes()
    (folder / "rows.jsonl.zst").write_bytes(rows + rows[:50])
    assert sim.read_results(folder).rows == results.rows
    (folder / "rows.jsonl.zst").write_bytes(rows + rows)
    assert len(sim.read_results(folder).rows) == 80
    with pytest.raises(OSError, match="manifest"):
        sim.read_results(tmp_path)


def test_plots_show_what_the_tables_say() -> None:
    run = sim.run("Q5", case="published")
    uses = [row for row in run.history if row["operation"] == "use"]
    ((one, other),) = sim.plot.overlaps(uses)
    at = sim.seconds(run.verdict["violated"]["at"])
    assert max(one["invoke"], other["invoke"]) == pytest.approx(at)
    axes = sim.plot.timeline(run)
    assert len(axes.patches) == len(uses) + 2
    assert len(axes.lines) == len(run.faults)
    assert sim.plot.overlaps([row for row in sim.run("Q5").history if row["operation"] == "use"]) == []
    labels = [label.get_text() for label in sim.plot.shares({"published": (372, 1000), "ours": (0, 1000)}).get_yticklabels()]
    assert labels == ["published", "ours"]


STUDY = """
title = "A clock that runs fast"
runs = 4
[plan]
lock = "single"
nodes = { count = 1 }
clients = 3
duration = "1s"
network = { min = "10us", max = "100us" }
workload = { lease = "100ms", hold_min = "200ms", hold_max = "200ms", think_min = "1ms", backoff_cap = "1ms", poll_cap = "1ms", checks = 2000 }
[[plan.faults]]
id = "drift"
kind = "node-rate"
at = "0s"
node = 0
rate_ppm = 0
[grid]
plan.faults.drift.rate_ppm = { values = [0, 60000], as = "drift" }
plan.workload.think_max = ["5ms", "0.05s"]
[[lock]]
name = "published"
plan = { variant = "published" }
[[lock]]
name = "ours"
"""


def test_a_study_has_cells_pairs_and_pictures(tmp_path: Path) -> None:
    file = tmp_path / "clock.toml"
    file.write_text(STUDY)
    study = sim.study(file, out=tmp_path / "out", results=tmp_path / "results")
    assert (study.title, study.is_complete, study.axes) == ("A clock that runs fast", True, ["drift", "think_max"])
    assert [(cell["drift"], cell["think_max"], cell["lock"]) for cell in study.cells] == [
        (drift, think, lock) for drift in (0, 60000) for think in (0.005, 0.05) for lock in ("published", "ours")
    ]
    for cell in study.cells:
        assert cell["share"] == cell["broken"] / cell["runs"]
        assert cell["least"] <= cell["share"] <= cell["most"]
    # The clock of one server decides, whatever the lock.
    broken = {drift: sum(cell["broken"] for cell in study.cells if cell["drift"] == drift) for drift in (0, 60000)}
    assert broken[0] == 0 < broken[60000]
    assert study.cells.to_pandas()["runs"].sum() == len(sim.read_results(tmp_path / "results").rows) == 32
    assert study.pairs.to_polars()["point"].to_list() == [0, 1, 2, 3, None]
    assert {(pair["one"], pair["other"]) for pair in study.pairs} == {("published", "ours")}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == [f"clock-{kind}.svg" for kind in study.pictures]
    assert study.pictures and all(picture.startswith("<svg") for picture in study.pictures.values())
    axes = sim.plot.curves(study)
    assert [line.get_label() for line in axes.lines][:2] == ["published, think_max 0.005", "ours, think_max 0.005"]
    with pytest.raises(ValueError, match="no axis 'hold_max'"):
        sim.plot.curves(study, axis="hold_max")
    with ThreadPoolExecutor(2) as threads:
        parts = sim.study(file, executor=threads, shards=2, jobs=1)
        assert (parts.cells, parts.pairs, parts.pictures) == (study.cells, study.pairs, study.pictures)
        with pytest.raises(ValueError, match="within"):
            sim.study(file, executor=threads, within="1s")
    assert sim.study(file, commit="0123456789", runs=2).cells[0]["runs"] == 2
    with pytest.raises(sim.SimulatorError, match="no-such-study"):
        sim.study(tmp_path / "no-such-study.toml")


def test_a_violation_is_explained(tmp_path: Path) -> None:
    case = sim.run("Q5", case="published")
    why = sim.why("Q5", case="published", messages=5)
    violated = case.verdict["violated"]
    assert (why.property, why.at, why.story) == (violated["property"], sim.seconds(violated["at"]), violated["story"])
    # Later faults cannot have led to it.
    assert why.since < why.at and len(why.faults) == sum(sim.seconds(fault["at"]) <= why.at for fault in case.plan["faults"])
    assert sum(row["is_necessary"] is not None for row in why.messages) == 5
    assert all(row["is_in_slice"] for row in why.necessary)
    assert [row["text"] for row in why.necessary if row["cause"] == "fault"] == [row["text"] for row in why.faults if row["is_necessary"]]
    assert why.messages.to_polars().shape == why.messages.to_pandas().shape == (len(why.messages), 4)
    # Without the faults that it calls necessary, one at a time, the property holds: the program has run that.
    assert any(row["is_necessary"] for row in why.faults)
    with pytest.raises(sim.SimulatorError, match="nothing to explain"):
        sim.why("Q5")


def test_a_run_is_drawn() -> None:
    picture = sim.report("Q5", case="published")
    assert picture.startswith("<svg") and picture == picture._repr_svg_()
    assert sim.report("Q5") != picture
    with pytest.raises(sim.SimulatorError, match="no-such-plan"):
        sim.report("no-such-plan.toml")
