"""One run."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ._program import Options, call
from ._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

NANOS = 1e9


class Run:
    """A run of the simulator: the same seed and options give the same run."""

    def __init__(self, report: dict[str, Any], history: Table) -> None:
        self.verdict: Any = report["verdict"]
        """``holds``, or what was violated."""
        self.trace: str = report["trace"]
        """A hash of all events. Two runs with the same trace are the same."""
        self.plan: dict[str, Any] = report["plan"]
        """Nodes, clients, network, work and faults of the run."""
        self.faults = Table(self.plan["faults"])
        """The faults, each with its kind and its time."""
        self.history = history
        """The operations of the clients: who asked for which name when (``invoke``, ``complete``), and the token."""

    @property
    def holds(self) -> bool:
        """Whether every property held."""
        return bool(self.verdict == "holds")

    def __repr__(self) -> str:
        return f"<Run of seed {self.plan['seed']}, {'holds' if self.holds else 'violated'}, {len(self.history)} operations>"


def run(
    plan: Union[str, Path, None] = None, *, case: Optional[str] = None, seed: Optional[int] = None, **options: Unpack[Options]
) -> Run:
    """Runs one seed, or a plan: the path of a file, or the id of one of the simulator's scenarios, such as ``Q5``.

    ``case`` is a case of the scenario, by default its first one.

    Raises `SimulatorError` for options that cannot be.
    """
    arguments = [] if plan is None else [str(plan)]
    if case is not None:
        arguments += ["--case", case]
    if seed is not None:
        arguments += ["--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "history.jsonl"
        report = call("run", [*arguments, "--history", str(history)], options)
        return Run(report, read_history(history))


def read_history(path: Path) -> Table:
    """The operations of a history. The first line is about the run."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    return Table(_row(json.loads(line)) for line in lines)


def _row(operation: dict[str, Any]) -> dict[str, Any]:
    process: dict[str, Any] = operation.pop("process", None) or {}
    times = {key: seconds_of(operation.pop(key, None)) for key in ("invoke", "complete", "read_at")}
    names = ", ".join(operation.pop("names", []))
    return {"client": process.get("client"), "restarts": process.get("restarts"), "names": names, **times, **operation}


def seconds_of(nanos: Optional[int]) -> Optional[float]:
    """Seconds of nanoseconds, in which the program writes times."""
    return None if nanos is None else nanos / NANOS
