"""The wheel, the Rust library, the client that is written from the protocol's page, and Redisson, on one name at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Awaitable, Callable, Iterator, Optional

import pytest
import redis
from redisson import Redisson
from servers import Server, until

import quorlock
import quorlock.asyncio

pytestmark = pytest.mark.beside

PROTOCOL = Path(__file__).parents[3] / "tests/protocol/beside.py"
ROUNDS = 40


def take_a_turn(store: Any, token: Optional[int], party: str) -> None:
    """Adds to a counter that only the lock protects, as the other clients do. A RedLock of Redisson has no token."""
    assert store.set("inside", party, nx=True), f"{store.get('inside')} is inside, too"
    value = int(store.get("counter") or 0)
    if token is not None:
        assert int(store.get("token") or 0) < token
        store.set("token", token)
    store.set("counter", value + 1)
    store.rpush("turns", party)
    store.delete("inside")


def blocking(store: Any, addresses: list[str]) -> None:
    with quorlock.Locks.quorum(addresses, trust_fresh_nodes=True) as locks:
        for _ in range(ROUNDS):
            with locks.lock("shared", wait=60) as guard:
                take_a_turn(store, guard.token, "threads")


async def concurrent(store: Any, addresses: list[str]) -> None:
    async with await quorlock.asyncio.Locks.quorum(addresses, trust_fresh_nodes=True) as locks:
        for _ in range(ROUNDS):
            async with locks.lock("shared", wait=60) as guard:
                take_a_turn(store, guard.token, "asyncio")


@pytest.fixture
def redisson() -> Iterator[Redisson]:
    made = Redisson()
    yield made
    made.end()


@pytest.mark.parametrize("count", [1, 3])
def test_clients_of_all_kinds_exclude_each_other(new_server: Callable[..., Server], count: int) -> None:
    counted(new_server, count, {})


@pytest.mark.redisson
@pytest.mark.parametrize(("count", "mode"), [(1, "fenced"), (3, "red")])
def test_redisson_takes_turns_with_all_of_them(new_server: Callable[..., Server], redisson: Redisson, count: int, mode: str) -> None:
    def take_turns(store: Any, addresses: list[str]) -> None:
        redisson.connect(mode, "shared", addresses)
        for _ in range(ROUNDS):
            token = redisson.acquire(mode, "shared", addresses)
            assert (token is None) == (mode == "red")
            take_a_turn(store, token, "redisson")
            redisson.release(mode, "shared", addresses)

    counted(new_server, count, {"redisson": take_turns})


def counted(new_server: Callable[..., Server], count: int, beside: dict[str, Callable[[Any, list[str]], None]]) -> None:
    """Lets all clients add to one counter, under a lock on this many servers."""
    counter = new_server()
    servers = [new_server() for _ in range(count)]
    addresses = [server.address for server in servers]
    store: Any = redis.Redis(port=counter.port, decode_responses=True)
    arguments = [str(counter.port), str(ROUNDS), *(str(server.port) for server in servers)]
    others = [
        subprocess.Popen([os.environ["BESIDE"], *arguments]),
        subprocess.Popen([sys.executable, str(PROTOCOL), "work", *arguments]),
    ]
    try:
        until(lambda: int(store.get("here") or 0) == 2)

        async def all_of_them() -> None:
            loop = asyncio.get_running_loop()
            threads = [loop.run_in_executor(None, work, store, addresses) for work in (blocking, *beside.values())]
            work: list[Awaitable[None]] = [*threads, concurrent(store, addresses)]
            await asyncio.gather(*work)

        asyncio.run(all_of_them())
        assert [other.wait(timeout=60) for other in others] == [0, 0]
    finally:
        for other in others:
            other.kill()
            other.wait()
    turns: list[str] = store.lrange("turns", 0, -1)
    parties = ["quorlock", "python", "threads", "asyncio", *beside]
    assert int(store.get("counter")) == len(parties) * ROUNDS
    assert {party: turns.count(party) for party in set(turns)} == dict.fromkeys(parties, ROUNDS)
    assert ROUNDS // 10 <= sum(one != other for one, other in zip(turns, turns[1:]))
