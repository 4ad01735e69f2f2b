"""Folders of results, which every command of the program writes with ``--results``."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterator, Union

from ._run import seconds_of
from ._table import Table

CHUNK_BYTES = 1 << 20


class Results:
    """The runs of one command, maybe not to its end."""

    def __init__(self, manifest: dict[str, Any], rows: Table) -> None:
        self.manifest = manifest
        """What ran, and where: the version, the law of the plans, the cells with their seeds, the machine."""
        self.rows = rows
        """One row for each run: its cell and seed, its verdict, the property that broke it and when, and how many effects its faults had.

        All properties that the history breaks, whether or not the plan demands them, have the time in a column: ``exclusion_at``.
        """

    @property
    def is_complete(self) -> bool:
        """Whether all runs have ended that the command asked for."""
        return bool(self.manifest["is_complete"])

    def __repr__(self) -> str:
        return f"<Results of {len(self.rows)} runs, {'complete' if self.is_complete else 'not complete'}>"


def read_results(folder: Union[str, "os.PathLike[str]"]) -> Results:
    """Reads what a command wrote with ``--results``. It may still be running: rows that are not yet complete are left out.

    This needs Python 3.14, or the package zstandard.

    Raises `OSError` if there are no results, and `ValueError` for files of another form.
    """
    manifest: Any = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
    if manifest.get("schema") != 1:
        raise ValueError(f"{folder}: results of the form {manifest.get('schema')}, and this version reads form 1")
    with open(Path(folder) / "rows.jsonl.zst", "rb") as file:
        read: list[dict[str, Any]] = [json.loads(line) for frame in frames(file) for line in io.BytesIO(frame)]
    properties = sorted({name for row in read for name in row["violated"]})
    rows = [_row(row, properties) for row in read]
    # Threads write them in the order in which their runs end.
    return Results(manifest, Table(sorted(rows, key=lambda row: (row["cell"], row["seed"]))))


def _row(row: dict[str, Any], properties: list[str]) -> dict[str, Any]:
    """A row whose values are numbers and text. Every row of a command has the same columns."""
    effects: list[tuple[str, int]] = row.pop("effects")
    violated: dict[str, int] = row.pop("violated")
    measured: dict[str, int] = row.pop("measured", None) or {}
    return {
        "cell": row.pop("cell"),
        "seed": row.pop("seed"),
        "verdict": row.pop("verdict"),
        "property": row.pop("property", None),
        "at": seconds_of(row.pop("first_violation", None)),
        **{f"{name}_at": seconds_of(violated.get(name)) for name in properties},
        "faults": ", ".join(sorted({kind for kind, _ in effects})),
        "effects": sum(count for _, count in effects),
        "lost": measured.get("lost"),
        "acknowledged": measured.get("acknowledged"),
        **row,
    }


def frames(file: BinaryIO) -> Iterator[bytes]:
    """The complete frames of a file. The last one may be cut off: a process that is killed does not finish it."""
    decompressor = _decompressor()
    rest = b""
    while True:
        frame = decompressor()
        parts: list[bytes] = []
        while not frame.eof:
            chunk = rest or file.read(CHUNK_BYTES)
            if not chunk:
                return
            rest = b""
            parts.append(frame.decompress(chunk))
        rest = frame.unused_data
        yield b"".join(parts)


def _decompressor() -> Callable[[], Any]:
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor
    import zstandard

    return lambda: zstandard.ZstdDecompressor().decompressobj()
