"""Plots of simulations, drawn by matplotlib, which must be installed. Each returns its axes, for titles and further lines."""

# matplotlib is typed in part.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Mapping, Optional

from ._explore import seconds
from ._rate import Rate
from ._run import Run
from ._study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HELD, OVERLAPPING = "tab:blue", "tab:red"


def timeline(run: Run, *, name: Optional[str] = None, axes: Optional[Axes] = None) -> Axes:
    """Who used the lock when: a row for each client, red where two used one name at once, and a dotted line for each fault.

    ``name`` is that of the lock, by default the first one that was used. Readers of one name may overlap.
    """
    axes = axes or _axes()
    uses = [row for row in run.history if row["operation"] == "use" and row["complete"] is not None]
    if name is None and uses:
        name = str(uses[0]["names"])
    uses = [use for use in uses if use["names"] == name]
    for use in uses:
        _bar(axes, use, use["invoke"], use["complete"], HELD)
    for one, other in overlaps(uses):
        for use in (one, other):
            _bar(axes, use, max(one["invoke"], other["invoke"]), min(one["complete"], other["complete"]), OVERLAPPING)
    for fault in run.faults:
        if "at" in fault:
            axes.axvline(seconds(fault["at"]), color="grey", linestyle=":", linewidth=1)
    clients = range(int(run.plan["clients"]))
    axes.set_yticks(list(clients), [f"client {client}" for client in clients])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_title(f"{name}, seed {run.plan['seed']}")
    return axes


def overlaps(uses: "list[dict[str, Any]]") -> "list[tuple[dict[str, Any], dict[str, Any]]]":
    """The pairs of uses of one name by two holds at the same time, of which one at least excludes the other."""
    found: list[tuple[dict[str, Any], dict[str, Any]]] = []
    running: list[dict[str, Any]] = []
    for use in sorted(uses, key=lambda use: use["invoke"]):
        running = [other for other in running if use["invoke"] < other["complete"]]
        beside = [other for other in running if other["hold"] != use["hold"] and other["client"] != use["client"]]
        found += [(other, use) for other in beside if "alone" in (other["access"], use["access"])]
        running.append(use)
    return found


def shares(counts: "Mapping[str, tuple[int, int]]", *, axes: Optional[Axes] = None) -> Axes:
    """In what share of its runs each lock broke, in percent, with bounds of 95 % (Wilson).

    ``counts`` has the number of runs that broke and of all runs: ``{"published": (exploration.violated["exclusion"], exploration.runs)}``.
    """
    axes = axes or _axes()
    points: list[tuple[float, float, float]] = []
    for broken, runs in counts.values():
        least, most = wilson(broken, runs)
        points.append((100 * broken / runs, 100 * least, 100 * most))
    _intervals(axes, list(counts), points)
    axes.set_xlabel("% of the runs (95 %)")
    return axes


def rates(estimates: Mapping[str, Rate], *, axes: Optional[Axes] = None) -> Axes:
    """How often the lock of each deployment breaks in its horizon, with its bounds, on a scale of powers of ten."""
    axes = axes or _axes()
    axes.set_xscale("log")
    _intervals(axes, list(estimates), [(one.rate, one.lower, one.upper) for one in estimates.values()])
    horizons = sorted({one.horizon for one in estimates.values()})
    axes.set_xlabel(f"violations in {' or '.join(horizons)} (95 %)")
    return axes


def curves(study: Study, *, axis: Optional[str] = None, axes: Optional[Axes] = None) -> Axes:
    """In what share of its runs each lock of a study broke over an axis with numbers, in percent, with its bounds of 95 %.

    ``axis`` is by default the first one of the study. Each value of the other axes has lines of its own.

    Raises `ValueError` if the study has no such axis.
    """
    names = study.axes
    axis = axis or next(iter(names), None)
    if axis not in names:
        raise ValueError(f"there is no axis {axis!r}: the axes of this study are {names}")
    axes = axes or _axes()
    lines: dict[str, list[dict[str, Any]]] = {}
    for cell in study.cells:
        others = [f"{name} {cell[name]}" for name in names if name != axis]
        lines.setdefault(", ".join([str(cell["lock"]), *others]), []).append(cell)
    for label, cells in lines.items():
        places = [cell[axis] for cell in cells]
        (line,) = axes.plot(places, [100 * cell["share"] for cell in cells], marker="o", markersize=3, label=label)
        least, most = ([100 * cell[bound] for cell in cells] for bound in ("least", "most"))
        axes.fill_between(places, least, most, color=line.get_color(), alpha=0.15)
    axes.set_xlabel(axis)
    axes.set_ylabel("% of the runs (95 %)")
    axes.set_title(study.title)
    axes.legend()
    return axes


def wilson(broken: int, runs: int) -> "tuple[float, float]":
    """The bounds of 95 % of a share, by Wilson's formula.

    >>> [round(bound, 4) for bound in wilson(0, 1000)]
    [0.0, 0.0038]
    """
    z = NormalDist().inv_cdf(0.975)
    share, square = broken / runs, z * z / runs
    middle = share + square / 2
    half = z * (share * (1 - share) / runs + square / (4 * runs)) ** 0.5
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))


def _intervals(axes: Axes, labels: "list[str]", points: "list[tuple[float, float, float]]") -> None:
    """A point with its bounds in a row for each label. Where nothing broke there is no point, but an upper bound."""
    for row, (value, least, most) in enumerate(points):
        axes.plot([least or most / 1000, most], [row, row], color=HELD, linewidth=2, alpha=1 if value else 0.4)
        axes.plot([value or most], [row], color=HELD, marker="o" if value else "<")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()


def _bar(axes: Axes, use: "dict[str, Any]", begin: float, end: float, color: str) -> None:
    axes.barh(use["client"], end - begin, left=begin, height=0.6, color=color)


def _axes() -> Axes:
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]
