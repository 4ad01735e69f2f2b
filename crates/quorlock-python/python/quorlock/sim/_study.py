"""Studies: plans whose numbers are varied or drawn."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from ._explore import SPAN, Executor, seconds
from ._picture import Picture, read_picture
from ._program import command
from ._table import Table


class Study:
    """How often each lock broke at each point. The bounds hold with a probability of 95 %, each for its own cell."""

    def __init__(self, report: dict[str, Any], pictures: "dict[str, Picture]") -> None:
        self.title: str = report["title"]
        """The title of the study."""
        self.is_complete: bool = report["is_complete"]
        """Whether all runs have ended that were asked for."""
        cells: list[dict[str, Any]] = report["cells"]
        self.axes: list[str] = [] if not cells else list(cells[0]["settings"])
        """The names of what is varied."""
        self.cells = Table(_cell(cell) for cell in cells)
        """One row for each lock at each point: the value of each axis, ``lock``, ``runs``, ``broken``, the ``share`` that broke with its
        bounds ``least`` and ``most``, and ``requests_per_hold``. Spans of time of an axis are seconds."""
        locks = list(dict.fromkeys(str(cell["lock"]) for cell in cells))
        self.pairs = Table(_pair(pair, locks) for pair in report["pairs"])
        """One row for each two locks at each ``point``, counted from 0, and without a point for all together: on how many of the same
        seeds only ``one`` broke, on how many only the ``other``, and the probability ``p`` of that if both break equally often."""
        self.pictures = pictures
        """The pictures of the study by their kind, such as ``curve``."""

    def __repr__(self) -> str:
        return f"<Study of {len(self.cells)} cells, {sum(cell['runs'] for cell in self.cells)} runs: {self.title}>"


def study(
    file: Union[str, "os.PathLike[str]"],
    *,
    runs: Optional[int] = None,
    commit: Optional[str] = None,
    within: Optional[str] = None,
    jobs: Optional[int] = None,
    out: Union[str, "os.PathLike[str]", None] = None,
    results: Union[str, "os.PathLike[str]", None] = None,
    resume: bool = False,
    executor: Optional[Executor] = None,
    shards: int = 1,
) -> Study:
    """Measures how often each lock of a study breaks. ``file`` is a study in TOML.

    .. code-block:: python

        study = sim.study("drift.toml", runs=64)
        study.cells.to_pandas().pivot_table("share", index="drift", columns="lock")
        study.pictures["curve"]                # shown by a notebook

    ``runs`` is the largest number of runs of a cell, by default that of the file. ``commit`` is a hash that chooses the seeds. No run begins
    after the time ``within``, such as ``10m``. Tables and pictures are also written to the folder ``out``. With ``results`` each run is
    recorded in that folder, and ``resume`` continues one.

    With an ``executor``, as for `explore`, it computes ``shards`` parts, each with all of its runs, and ``within`` and ``resume`` cannot be
    given.

    Raises `SimulatorError` for a file that cannot be, and `ValueError` for arguments that exclude each other.
    """
    with tempfile.TemporaryDirectory() as temporary:
        options: dict[str, object] = {"runs": runs, "commit": commit, "jobs": jobs}
        if executor is not None:
            if within is not None or resume:
                raise ValueError("the parts of an executor have all of their runs: leave out `within` and `resume`")
            results = Path(temporary, "whole") if results is None else results
            parts = [executor.submit(run_shard, Path(file).name, Path(file).read_bytes(), options, (shard, shards)) for shard in range(shards)]
            _merge([part.result() for part in parts], Path(temporary), Path(results))
            # Nothing is left to be run: it draws the pictures.
            resume = True
        folder = Path(temporary, "out") if out is None else Path(out)
        report = command("study", file, **options, **{"for": within}, results=results, resume=resume, out=folder)
        prefix = f"{Path(file).stem}-"
        pictures = {path.stem[len(prefix) :]: read_picture(path) for path in sorted(folder.glob(f"{prefix}*.svg"))}
        return Study(report, pictures)


def run_shard(name: str, file: bytes, options: Mapping[str, object], shard: "tuple[int, int]") -> "dict[str, bytes]":
    """Runs one shard on this machine. Returns the files of its results."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / name).write_bytes(file)
        part = f"{shard[0]}/{shard[1]}"
        command("study", folder / name, **options, shard=part, results=folder / "results", out=folder / "out")
        return {path.name: path.read_bytes() for path in (folder / "results").iterdir()}


def _merge(parts: "list[dict[str, bytes]]", folder: Path, whole: Path) -> None:
    """Writes the results of all shards to a folder."""
    folders = [folder / f"shard-{shard}" for shard in range(len(parts))]
    for place, files in zip(folders, parts):
        place.mkdir()
        for name, content in files.items():
            (place / name).write_bytes(content)
    command("merge", *folders, out=whole)


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    """A row of which each axis is a column, with numbers where the axis has numbers."""
    row = {axis: _value(text) for axis, text in cell["settings"].items()}
    return {**row, **{key: value for key, value in cell.items() if key not in ("cell", "settings")}}


def _value(text: str) -> Union[int, float, str]:
    if SPAN.fullmatch(text):
        return seconds(text)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _pair(pair: dict[str, Any], locks: "list[str]") -> dict[str, Any]:
    return {**pair, "one": locks[pair["one"]], "other": locks[pair["other"]]}
