"""The program ``quorlock-sim``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Iterator, Literal, Mapping, Sequence, TypedDict, Union, cast


class SimulatorError(RuntimeError):
    """The program is not there, or refuses its arguments."""


class Options(TypedDict, total=False):
    """What is simulated. Everything that is left out is drawn from the seed, or is the program's default."""

    lane: Literal["fast", "turmoil"]
    """How messages are carried: as values, or as the bytes of the real client over simulated TCP."""
    lock: Literal["single", "multi", "redlock"]
    """The kind of lock. Default: ``redlock``."""
    deployment: Literal["servers", "sentinels", "cluster", "stores"]
    """The kind of nodes. Default: ``servers``."""
    variant: str
    """The implementation of the lock: ``product``, or one of the simulator's, such as ``published``."""
    nodes: int
    """The number of nodes."""
    clients: int
    """The number of clients."""
    faults: str
    """``inside`` (those that the lock's assumptions allow), ``all``, ``none``, or a list such as ``cut,pause-client``."""
    workload: str
    """The kind of work."""
    duration: str
    """How long the clients work, such as ``2s``."""


COMPLETED = (0, 2, 3, 4)
"""Exit codes of a simulation that ran: as expected, safety violated, no progress, nothing shown."""


def command(name: str, *arguments: Union[str, "os.PathLike[str]"], **options: object) -> Any:
    """Runs any command of the program that has ``--json``, and returns the object that it prints.

    .. code-block:: python

        sim.command("matrix", lock=["published", "ours"], **{"class": "partitions"}, runs=100, results="matrix")

    Options are those of ``quorlock-sim NAME --help``, with underscores. A list gives an option several times, and ``True`` one without a
    value.

    Raises `SimulatorError` for options that cannot be.
    """
    return call(name, [os.fspath(argument) for argument in arguments], options)


def call(name: str, arguments: Sequence[str], options: Mapping[str, object]) -> Any:
    """Runs a command of the program, and returns the object that it prints."""
    done = subprocess.run([_program(), name, *arguments, *_flags(options), "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in COMPLETED or not done.stdout:
        raise SimulatorError(f"quorlock-sim {name}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return json.loads(done.stdout)


def _flags(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        values: Sequence[object] = cast("list[object]", value) if isinstance(value, list) else [value]
        for one in values:
            if one is False or one is None:
                continue
            yield f"--{name.replace('_', '-')}"
            if one is not True:
                yield str(one)


def _program() -> str:
    found = os.environ.get("QUORLOCK_SIM") or shutil.which("quorlock-sim")
    if found is None:
        raise SimulatorError("there is no program quorlock-sim on the PATH: install it, or set QUORLOCK_SIM to its path")
    return found
