"""Many runs."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Protocol, TypeVar

from ._program import Options, call
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
R = TypeVar("R", covariant=True)

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PART = re.compile(rf"([\d.]+)({'|'.join(UNITS)})")
SPAN = re.compile(rf"({PART.pattern})+")


class Result(Protocol[R]):
    """What an executor returns: it has the result when it was computed."""

    def result(self) -> R:
        """Waits for the result."""
        ...


class Executor(Protocol):
    """What computes shards: ``concurrent.futures``, a client of Dask, or an executor of submitit on Slurm."""

    def submit(self, fn: Callable[..., T], /, *arguments: Any) -> Result[T]:
        """Starts a call."""
        ...


class Exploration:
    """The result of many runs, from one shard or from several."""

    def __init__(self, reports: "list[tuple[dict[str, Any], list[dict[str, Any]]]]") -> None:
        totals = [report for report, _ in reports]
        self.runs = sum(int(total["runs"]) for total in totals)
        """The number of runs."""
        self.holds = sum(int(total["holds"]) for total in totals)
        """How often a lock was held, in all runs."""
        violated: Counter[str] = Counter()
        for total in totals:
            violated.update({name: count["runs"] for name, count in total["failed"].items()})
        self.violated: dict[str, int] = dict(violated)
        """How many runs violated each property."""
        self.failures = Table(sorted((row for _, rows in reports for row in rows), key=lambda row: row["seed"]))
        """One row for each failure: its seed, the property, when and how it was violated, and the plan."""

    def rows(self) -> Table:
        """One row for each property that was violated, with the number of runs."""
        return Table({"property": name, "runs": count, "of": self.runs} for name, count in sorted(self.violated.items()))

    def __repr__(self) -> str:
        return f"<Exploration of {self.runs} runs, {len(self.failures)} failed>"


def explore(
    seeds: range, *, executor: Optional[Executor] = None, shards: int = 1, jobs: Optional[int] = None, **options: Unpack[Options]
) -> Exploration:
    """Runs many seeds, and goes on after a failure.

    Without an ``executor`` this machine computes them, with ``jobs`` threads (by default one per core). With one, ``shards`` parts are
    submitted to it. It is anything with a ``submit`` whose results have a ``result``: an executor of `concurrent.futures`, a client of
    Dask, an executor of submitit on Slurm. The program must be on each machine.

    Raises `SimulatorError` for options that cannot be, and `ValueError` for seeds that are not consecutive.
    """
    if seeds.step != 1 or not seeds:
        raise ValueError("seeds must be a range of consecutive seeds, such as range(1000)")
    common: dict[str, object] = {**options, "seeds": f"{seeds.start}..{seeds.stop}"}
    if jobs is not None:
        common["jobs"] = jobs
    parts = [{**common, "shard": f"{shard}/{shards}"} for shard in range(shards)]
    if executor is None:
        return Exploration([run_shard(part) for part in parts])
    return Exploration([submitted.result() for submitted in [executor.submit(run_shard, part) for part in parts]])


def run_shard(options: Mapping[str, object]) -> "tuple[dict[str, Any], list[dict[str, Any]]]":
    """Runs one shard. Returns what the program printed, and the failures that it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        (report,) = call("explore", ["--keep-going", "--out", folder], options)["cells"]
        files = sorted(Path(folder).glob("*.json"))
        return report, [_failure(json.loads(path.read_text(encoding="utf-8"))) for path in files]


def _failure(failure: dict[str, Any]) -> dict[str, Any]:
    verdict: Any = failure["verdict"]
    plan: dict[str, Any] = failure["plan"]
    # `"no-progress"`, or `{"violated": {..}}`.
    violated: dict[str, Any] = {} if isinstance(verdict, str) else verdict.get("violated", {})
    return {
        "seed": plan["seed"],
        "property": violated.get("property", str(verdict)),
        "at": seconds(violated["at"]) if "at" in violated else None,
        "name": violated.get("name"),
        "story": violated.get("story"),
        "lock": plan["lock"],
        "variant": plan["variant"],
        "nodes": plan["nodes"]["count"],
        "clients": plan["clients"],
        "faults": ", ".join(sorted({fault["kind"] for fault in plan["faults"]})),
        "trace": failure["trace"],
    }


def seconds(text: str) -> float:
    """A span as the program writes it: ``1.151759966s``, ``96us``."""
    return sum(float(number) * UNITS[unit] for number, unit in PART.findall(text))
