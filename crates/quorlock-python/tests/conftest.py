"""What the tests share: servers, and Python programs that run beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest
from servers import Server

import quorlock

Program = Callable[..., "subprocess.Popen[str]"]

# A shell starts programs in the background with SIGINT ignored, and they leave it so to those that they start.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not harm it. Each test uses names of its own."""
    made = Server(tmp_path_factory.mktemp("redis"))
    yield made
    made.kill()


@pytest.fixture
def new_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers of this test alone."""
    made: list[Server] = []

    def start(*settings: str, configuration: Optional[Path] = None) -> Server:
        made.append(Server(tmp_path, *settings, configuration=configuration))
        return made[-1]

    yield start
    for one in made:
        one.kill()


@pytest.fixture
def locks(server: Server) -> Iterator[quorlock.Locks]:
    with quorlock.Locks.connect(server.address) as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    node: str = request.node.name  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return node.replace("[", "/").replace("]", "")


CONNECT = """
import logging, os, signal, sys, threading, time
import quorlock
if not logging.root.handlers:
    logging.getLogger("quorlock").setLevel(logging.ERROR)  # a server of a test keeps nothing on disk, of which it warns
locks = quorlock.Locks.connect(sys.argv[1])
name = sys.argv[2]
"""


@contextmanager
def programs(at_most: float = 60) -> Iterator[Program]:
    """Starts programs in Python, with the address of a server as their argument. They are killed after a time."""
    started: list[subprocess.Popen[str]] = []
    bounds: list[threading.Timer] = []

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-u", "-c", INTERRUPTIBLE + textwrap.dedent(code), *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "ignore:This process"}
        started.append(subprocess.Popen(command, text=True, env=environment, **pipes))  # type: ignore[call-overload]
        bounds.append(threading.Timer(at_most, started[-1].kill))
        bounds[-1].start()
        return started[-1]

    yield start
    for bound in bounds:
        bound.cancel()
    for one in started:
        one.kill()
        one.communicate()


@pytest.fixture
def program() -> Iterator[Program]:
    with programs() as start:
        yield start


COMPUTE = """
with locks.lock(name, watchdog_lease=3) as guard:
    began = time.monotonic()
    end = began + 10
    while time.monotonic() < end: {work}
    guard.check()
    print(10 <= time.monotonic() - began, guard.is_held)
"""

WORKS = [
    "sum(i * i for i in range(1000))",
    # Calls of C that hold the interpreter, each for about a second: no other thread of Python runs.
    "sum(range(5 * 10 ** 7))",
]


@pytest.fixture(scope="session", autouse=True)
def computing(request: pytest.FixtureRequest) -> Iterator[list[subprocess.Popen[str]]]:
    """Programs that hold a lock and compute for ten seconds. They start before the first test, so that no test waits for long."""
    if not any(item.get_closest_marker("computes") for item in request.session.items):
        yield []
        return
    server: Server = request.getfixturevalue("server")
    # Their output is read when the test comes, which other tests may delay.
    with programs(at_most=600) as start:
        yield [start(CONNECT + COMPUTE.format(work=work), server.address, f"computing/{at}") for at, work in enumerate(WORKS)]
