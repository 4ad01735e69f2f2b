"""The program ``quorlock-sim``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Literal, Mapping, Sequence, TypedDict


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


def call(command: str, arguments: Sequence[str], options: Mapping[str, object]) -> Any:
    """Runs a command of the program, and returns the object that it prints."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    done = subprocess.run([_program(), command, *arguments, *flags, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in COMPLETED or not done.stdout:
        raise SimulatorError(f"quorlock-sim {command}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return json.loads(done.stdout)


def _program() -> str:
    found = os.environ.get("QUORLOCK_SIM") or shutil.which("quorlock-sim")
    if found is None:
        raise SimulatorError("there is no program quorlock-sim on the PATH: install it, or set QUORLOCK_SIM to its path")
    return found
