"""Why a lock broke."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from ._explore import seconds
from ._program import command
from ._table import Table


class Why:
    """What led to a violation."""

    def __init__(self, report: dict[str, Any]) -> None:
        violation: dict[str, Any] = report["violation"]
        self.property: str = violation["property"]
        """The property that was violated."""
        self.at: float = seconds(violation["at"])
        """When, in seconds."""
        self.story: str = violation["story"]
        """What happened, in a sentence."""
        self.since: float = seconds(report["since"])
        """From when on the history can have led to it, in seconds."""
        self.faults = Table(map(_cause, report["faults"]))
        """One row for each fault: ``at``, ``text``, ``is_in_slice`` (it can have led to the violation), and ``is_necessary`` (without it the
        property would have held; ``None`` if that was not tried)."""
        self.messages = Table(map(_cause, report["messages"]))
        """The same for each message. One is tried by losing it."""

    @property
    def necessary(self) -> Table:
        """The faults and messages without any one of which the property would have held, by their time."""
        causes = [{"cause": "fault", **row} for row in self.faults] + [{"cause": "message", **row} for row in self.messages]
        return Table(sorted((row for row in causes if row["is_necessary"]), key=lambda row: row["at"]))

    def __repr__(self) -> str:
        return f"<Why {self.property} was violated at {self.at:.3f} s: {len(self.necessary)} necessary causes>"


def why(
    plan: Union[str, "os.PathLike[str]"], *, case: Optional[str] = None, seed: Optional[int] = None, messages: Optional[int] = None
) -> Why:
    """Explains a violation: which faults and messages led to it, and without which of them the property would have held.

    .. code-block:: python

        sim.why("Q5", case="published").necessary.to_pandas()

    ``plan`` is the path of a plan or of a failure, or the id of one of the simulator's scenarios. ``case`` is a case of the scenario, by
    default its first one. At most so many ``messages``, the last ones before the violation, are tried, each by a run (default: 1000).

    Raises `SimulatorError` if nothing was violated, and for a file that cannot be.
    """
    return Why(command("why", plan, case=case, seed=seed, messages=messages))


def _cause(cause: dict[str, Any]) -> dict[str, Any]:
    return {**cause, "at": seconds(cause["at"])}
