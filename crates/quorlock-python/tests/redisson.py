"""Redisson's locks on a JVM, which executes commands line by line: see tests/interop/redisson."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Optional

PLACE = Path(__file__).parents[3] / "tests/interop/redisson"


class Redisson:
    """A JVM with a client of the newest version that is tested. It releases nothing when it is ended."""

    def __init__(self) -> None:
        version = max((PLACE / "versions").read_text().split(), key=lambda version: [int(part) for part in version.split(".")])
        folder = PLACE / "target" / version
        libraries = (folder / "classpath").read_text().strip()
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{folder}/classes:{libraries}", "Driver", "30000"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._asked = 0

    def acquire(self, mode: str, name: str, addresses: list[str]) -> Optional[int]:
        """Waits until the lock is acquired, which its watchdog renews. Returns the token, if the mode has one."""
        token = self._ask("acquire", mode, name, addresses, "0")
        return int(token) if token else None

    def release(self, mode: str, name: str, addresses: list[str]) -> None:
        self._ask("release", mode, name, addresses)

    def connect(self, mode: str, name: str, addresses: list[str]) -> None:
        self._ask("connect", mode, name, addresses)

    def _ask(self, verb: str, mode: str, name: str, addresses: list[str], *arguments: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._asked += 1
        # Redisson's addresses have no database.
        servers = ",".join(address.rstrip("/") for address in addresses)
        self._process.stdin.write(" ".join([str(self._asked), "thread", verb, mode, name, servers, *arguments]) + "\n")
        self._process.stdin.flush()
        asked, how, *value = self._process.stdout.readline().rstrip("\n").split(" ", 2)
        assert (asked, how) == (str(self._asked), "ok"), (verb, how, value)
        return "".join(value).strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()
