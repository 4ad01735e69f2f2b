#!/usr/bin/env python3
"""Measures the locks beside redis-py's, on one server that the benchmark starts: bench.py [--pairs N] [--rounds N]

Both take turns in one run, round by round, so that what disturbs the machine disturbs both. A pair is an acquire and a release. Prints the
medians of the rounds, and the median of the rounds' ratios. Install the wheel of the release profile and redis first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, Awaitable, Callable, Optional

import redis
import redis.asyncio

import quorlock
import quorlock.asyncio

sys.path.insert(0, str(Path(__file__).parent / "tests"))
from servers import Server  # noqa: E402

TASKS = 64


def report(title: str, rounds: list[list[float]], unit: str, bar: str) -> None:
    ours, theirs = rounds
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    medians = f"quorlock {statistics.median(ours):8.0f} {unit}, redis-py {statistics.median(theirs):8.0f} {unit}"
    print(f"{title:28} {medians:58} ratio {ratio:5.2f} (bar: {bar})")


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


async def timed_async(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def blocking(server: Server, pairs: int, rounds: int) -> None:
    ours = quorlock.Locks.connect(server.address).lock("ours")
    theirs = redis.Redis(port=server.port).lock("theirs", timeout=30)

    def run(lock: Any) -> None:
        for _ in range(pairs):
            with lock:
                pass

    results: list[tuple[float, float]] = [(timed(lambda: run(ours)), timed(lambda: run(theirs))) for _ in range(rounds)]
    micros = [[one[side] / pairs * 1e6 for one in results] for side in (0, 1)]
    report("blocking, one after another", micros, "us/pair", "at most 1.25")


async def concurrent(server: Server, pairs: int, rounds: int) -> None:
    locks = await quorlock.asyncio.Locks.connect(server.address)
    client = redis.asyncio.Redis(port=server.port)

    async def run(lock: Any, count: int) -> None:
        for _ in range(count):
            async with lock:
                pass

    ours, theirs = locks.lock("ours"), client.lock("theirs", timeout=30)
    single = [(await timed_async(run(ours, pairs)), await timed_async(run(theirs, pairs))) for _ in range(rounds)]
    micros = [[one[side] / pairs * 1e6 for one in single] for side in (0, 1)]
    report("asyncio, one after another", micros, "us/pair", "at most 1.25")

    each = max(1, pairs // 8)
    many: list[tuple[float, float]] = []
    for _ in range(rounds):
        own = [run(locks.lock(f"ours/{task}"), each) for task in range(TASKS)]
        other = [run(client.lock(f"theirs/{task}", timeout=30), each) for task in range(TASKS)]
        many.append((await timed_async(asyncio.gather(*own)), await timed_async(asyncio.gather(*other))))
    rates = [[TASKS * each / one[side] for one in many] for side in (0, 1)]
    report(f"asyncio, {TASKS} tasks", rates, "pairs/s", "at least 3")
    await client.aclose()
    await locks.close()


def import_time(rounds: int) -> None:
    """The time that importing takes in a new interpreter, less that of an interpreter that imports nothing."""
    code = "import time; began = time.perf_counter(); import quorlock; print(time.perf_counter() - began)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(rounds)]
    millis = [float(run.stdout) * 1000 for run in runs]
    print(f"{'import quorlock':28} {statistics.median(millis):.1f} ms (bar: below 60)")


def wheel_size(wheel: Optional[str]) -> None:
    if wheel is not None:
        unpacked = sum(item.file_size for item in zipfile.ZipFile(wheel).infolist())
        print(f"{'wheel':28} {os.path.getsize(wheel) / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB (bar: below 8)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1000, help="pairs in a round")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each")
    parser.add_argument("--wheel", help="the wheel that is installed, to print its size")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            blocking(server, arguments.pairs, arguments.rounds)
            asyncio.run(concurrent(server, arguments.pairs, arguments.rounds))
        finally:
            server.kill()
    import_time(arguments.rounds)
    wheel_size(arguments.wheel)


if __name__ == "__main__":
    main()
