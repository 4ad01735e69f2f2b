"""How often the lock of a deployment breaks."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from ._program import command
from ._table import Table


class Rate:
    """The expected number of violations in a horizon. The bounds hold with a probability of 95 %, and count what was not run as violated."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.horizon: str = report["horizon"]
        """The time whose violations are expected, such as ``1y``."""
        self.property: str = report["property"]
        """The property whose violations are counted."""
        self.rate: float = report["rate"]
        """The expected number of violations in the horizon."""
        self.lower: float = report["lower"]
        """Its lower bound."""
        self.upper: float = report["upper"]
        """Its upper bound."""
        self.relative_error: Optional[float] = report["relative_error"]
        """Half of the distance of the bounds as a part of the rate; ``None`` if no violation was found."""
        self.runs: int = report["runs"]
        """The number of runs."""
        self.is_complete: bool = report["is_complete"]
        """Whether the bounds are as narrow as asked for."""
        self.strata = Table(report["strata"])
        """One row for each cut set: which faults strike together, how often, and how many of their runs broke."""

    def __repr__(self) -> str:
        return f"<Rate of {self.rate:.3g} in {self.horizon} (95 %: {self.lower:.3g} to {self.upper:.3g}), {self.runs} runs>"


def rate(
    deployment: Union[str, "os.PathLike[str]"],
    *,
    relative_error: float = 0.3,
    runs: Optional[int] = None,
    within: Optional[str] = None,
    jobs: Optional[int] = None,
    results: Union[str, "os.PathLike[str]", None] = None,
    resume: bool = False,
) -> Rate:
    """Estimates how often the lock of a deployment breaks. ``deployment`` is a file in TOML with the rates of its faults.

    It ends when the relative error is reached, or before more ``runs``, or after the time ``within``, such as ``10m``. The bounds hold all
    the same. With ``results`` each run is recorded in that folder, and ``resume`` continues one.

    Raises `SimulatorError` for a file that cannot be, and for a deployment whose lock breaks without any fault.
    """
    options = {"runs": runs, "for": within, "jobs": jobs, "results": results, "resume": resume}
    return Rate(command("rate", deployment, relative_error=relative_error, **options))
