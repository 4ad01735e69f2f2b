"""Redis servers for tests: each on a free port of the loopback interface, ended by its process id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Callable, Optional, TypeVar

T = TypeVar("T")

FREE = "a free port"
"""A value among the settings of a server: each has a port of its own, see `Server.others`."""


class Server:
    """A Redis server, which can be killed, stopped and started again without its data. With a ``configuration`` it is a sentinel."""

    def __init__(self, folder: Path, *settings: str, configuration: Optional[Path] = None) -> None:
        self._folder = folder
        self._configuration = configuration
        self._settings = settings
        self._process: Optional[subprocess.Popen[bytes]] = None
        self.port = 0
        self.others: list[int] = []
        """The ports of the settings that are `FREE`, in their order."""
        until(self._starts_on_free_ports)

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Starts on the same ports again, of which another process may have one for a moment."""
        until(self._starts)

    def _starts_on_free_ports(self) -> bool:
        self.port, self.others = free_port(), [free_port() for setting in self._settings if setting == FREE]
        return self._starts()

    def _starts(self) -> bool:
        """Whether each of the ports is this process's: a server ends when it cannot have one."""
        others = iter(self.others)
        settings = [str(next(others)) if setting == FREE else setting for setting in self._settings]
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        kind = ["--save", ""] if self._configuration is None else ["--sentinel"]
        file = [] if self._configuration is None else [str(self._configuration)]
        command = ["redis-server", *file, *arguments, *kind, *settings]
        self._process = process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: process.poll() is not None or self._answers(process.pid))
        return process.poll() is None

    def _answers(self, pid: int) -> bool:
        """Whether the port is that of this process, which answers when it has all of its ports."""
        password = dict(zip(self._settings, self._settings[1:])).get("--requirepass")
        login = {} if password is None else {"REDISCLI_AUTH": password}
        asked = ["redis-cli", "-p", str(self.port), "info", "server"]
        try:
            answer = subprocess.run(asked, capture_output=True, text=True, timeout=1, env={**os.environ, **login}).stdout
        except subprocess.TimeoutExpired:
            return False
        return f"process_id:{pid}" in answer.split()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stops the process without ending it."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def keys(self) -> set[str]:
        """The keys that the server has, without the counters of tokens, which outlive locks."""
        return {key for key in self.ask("keys", "*").split() if not key.startswith("redisson_lock_token:")}

    def ask(self, *command: str) -> str:
        """Executes a command on the server, and returns its answer as redis-cli prints it."""
        asked = ["redis-cli", "-p", str(self.port), "--raw", *command]
        return subprocess.run(asked, capture_output=True, text=True, check=True, errors="surrogateescape").stdout


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def until(condition: Callable[[], T], at_most: float = 20) -> T:
    """Waits until a condition holds, and returns what it returned."""
    end = time.monotonic() + at_most
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"{condition} did not hold within {at_most} s"
        time.sleep(0.01)
