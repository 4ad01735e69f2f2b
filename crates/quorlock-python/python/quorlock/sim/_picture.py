"""Pictures that the program draws."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Optional, Union

from ._program import command


class Picture(str):
    """A picture as the text of an SVG file. A notebook shows it; ``Path("run.svg").write_text(picture)`` keeps it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<Picture of {len(self)} characters>"


def report(plan: Union[str, "os.PathLike[str]"], *, case: Optional[str] = None, seed: Optional[int] = None) -> Picture:
    """Draws a run: what clients believed, and what each node had.

    .. code-block:: python

        sim.report("Q5", case="published")     # shown by a notebook

    ``plan`` is the path of a plan or of a failure, or the id of one of the simulator's scenarios. ``case`` is a case of the scenario, by
    default its first one. If the file has a table ``[picture]``, that part of the run is drawn.

    Raises `SimulatorError` for a file that cannot be.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "picture.svg"
        command("report", plan, svg=True, case=case, seed=seed, out=out)
        return read_picture(out)


def read_picture(path: Path) -> Picture:
    """Reads a picture that the program has written."""
    return Picture(path.read_text(encoding="utf-8"))
