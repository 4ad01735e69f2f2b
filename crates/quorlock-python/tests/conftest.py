"""What the tests share: servers, and Python programs that run beside them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Callable, Iterator

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

    def start(*settings: str) -> Server:
        made.append(Server(tmp_path, *settings))
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


@pytest.fixture
def program() -> Iterator[Program]:
    """Starts a program in Python, with the address of a server as its argument. It is killed after a minute."""
    started: list[subprocess.Popen[str]] = []
    bounds: list[threading.Timer] = []

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-u", "-c", INTERRUPTIBLE + textwrap.dedent(code), *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "ignore:This process"}
        started.append(subprocess.Popen(command, text=True, env=environment, **pipes))  # type: ignore[call-overload]
        bounds.append(threading.Timer(60, started[-1].kill))
        bounds[-1].start()
        return started[-1]

    yield start
    for bound in bounds:
        bound.cancel()
    for one in started:
        one.kill()
        one.communicate()
