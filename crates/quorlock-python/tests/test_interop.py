"""The wheel, the Rust library and the client that is written from the protocol's page, on one name at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Union

import pytest
import redis
from servers import Server, until

import quorlock
import quorlock.asyncio

pytestmark = pytest.mark.beside

PROTOCOL = Path(__file__).parents[3] / "tests/protocol/beside.py"
ROUNDS = 40

Guard = Union[quorlock.Guard, quorlock.asyncio.Guard]


def take_a_turn(store: Any, guard: Guard, party: str) -> None:
    """Adds to a counter that only the lock protects, as the other clients do."""
    assert store.set("inside", party, nx=True), f"{store.get('inside')} is inside, too"
    assert int(store.get("token") or 0) < guard.token
    value = int(store.get("counter") or 0)
    store.set("token", guard.token)
    store.set("counter", value + 1)
    store.rpush("turns", party)
    store.delete("inside")


def blocking(store: Any, addresses: list[str]) -> None:
    with quorlock.Locks.quorum(addresses, trust_fresh_nodes=True) as locks:
        for _ in range(ROUNDS):
            with locks.lock("shared", wait=60) as guard:
                take_a_turn(store, guard, "threads")


async def concurrent(store: Any, addresses: list[str]) -> None:
    async with await quorlock.asyncio.Locks.quorum(addresses, trust_fresh_nodes=True) as locks:
        for _ in range(ROUNDS):
            async with locks.lock("shared", wait=60) as guard:
                take_a_turn(store, guard, "asyncio")


@pytest.mark.parametrize("count", [1, 3])
def test_clients_of_all_kinds_exclude_each_other(new_server: Callable[..., Server], count: int) -> None:
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

        async def both() -> None:
            loop = asyncio.get_running_loop()
            await asyncio.gather(loop.run_in_executor(None, blocking, store, addresses), concurrent(store, addresses))

        asyncio.run(both())
        assert [other.wait(timeout=60) for other in others] == [0, 0]
    finally:
        for other in others:
            other.kill()
            other.wait()
    turns: list[str] = store.lrange("turns", 0, -1)
    assert int(store.get("counter")) == 4 * ROUNDS
    assert {party: turns.count(party) for party in set(turns)} == dict.fromkeys(["quorlock", "python", "threads", "asyncio"], ROUNDS)
    assert ROUNDS // 10 <= sum(one != other for one, other in zip(turns, turns[1:]))
