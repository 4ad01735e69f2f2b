"""Servers that are killed and stopped."""

from __future__ import annotations

import asyncio
import time
from typing import Callable

import pytest
from servers import Server, until

import quorlock
import quorlock.asyncio

Start = Callable[..., Server]


@pytest.mark.parametrize("harm", [Server.kill, Server.stop], ids=["killed", "stopped"])
def test_a_holder_learns_of_the_loss_by_the_end_of_its_lease(new_server: Start, harm: Callable[[Server], None]) -> None:
    server = new_server()
    with quorlock.Locks.connect(server.address) as locks:
        guard = locks.lock("orders/42", watchdog_lease=0.5).acquire()
        told: list[quorlock.Lost] = []
        guard.lost.add_callback(told.append)
        harm(server)
        began = time.monotonic()
        assert guard.lost.wait(timeout=20) is quorlock.Lost.UNREACHABLE
        assert time.monotonic() - began < 5
        assert not guard.is_held
        assert guard.validity == 0
        until(lambda: told == [quorlock.Lost.UNREACHABLE])
        with pytest.raises(quorlock.LostError):
            guard.check()
        with pytest.raises(quorlock.AcquireError) as caught:
            locks.lock("orders/42", wait=0.5).acquire()
        assert caught.value.kind is quorlock.ErrorKind.UNAVAILABLE
        assert str(server.port) in caught.value.nodes[0]


def test_a_server_that_forgot_gives_the_lock_up(new_server: Start) -> None:
    server = new_server()
    with quorlock.Locks.connect(server.address) as locks:
        guard = locks.lock("orders/42", watchdog_lease=1).acquire()
        server.kill()
        server.start()
        assert guard.lost.wait(timeout=20) in (quorlock.Lost.TAKEN, quorlock.Lost.UNREACHABLE)
        with locks.lock("orders/42", wait=20) as again:
            assert guard.token < again.token


def test_a_majority_goes_on_without_a_minority(new_server: Start) -> None:
    servers = [new_server() for _ in range(3)]
    addresses = [server.address for server in servers]
    with quorlock.Locks.quorum(addresses, trust_fresh_nodes=True) as locks:
        guard = locks.lock("orders/42", watchdog_lease=1).acquire()
        servers[0].kill()
        with locks.lock("stock/7", wait=20) as other:
            assert other.is_held
        time.sleep(1.2)  # longer than the lease: it is renewed by two
        guard.check()
        assert locks.inspect("orders/42").nodes == 2
        servers[1].stop()
        assert guard.lost.wait(timeout=20) is quorlock.Lost.UNREACHABLE
        servers[1].resume()


def test_work_of_asyncio_is_cancelled_when_the_server_stops(new_server: Start) -> None:
    server = new_server()

    async def main() -> None:
        locks = await quorlock.asyncio.Locks.connect(server.address)
        guard = await locks.lock("orders/42", watchdog_lease=0.5).acquire()
        server.stop()
        with pytest.raises(quorlock.LostError):
            await asyncio.wait_for(guard.while_held(asyncio.sleep(60)), 20)
        server.resume()
        await locks.close()

    asyncio.run(main())


def test_a_client_waits_for_a_server_that_is_not_there_yet(new_server: Start) -> None:
    server = new_server()
    server.kill()
    began = time.monotonic()
    with pytest.raises(quorlock.ConnectError) as caught:
        quorlock.Locks.connect(server.address)
    assert time.monotonic() - began < 10
    assert caught.value.kind is quorlock.ErrorKind.UNAVAILABLE
    lazy = quorlock.Locks.connect(server.address, lazy=True)
    with pytest.raises(quorlock.AcquireError):
        lazy.ready()
    server.start()
    lazy.lock("orders/42", wait=20).acquire().release()
    lazy.ready()
    quorlock.Locks.connect(server.address, wait_for_servers=20).close()


def test_embedded_nodes_are_killed_and_restarted() -> None:
    nodes = [quorlock.EmbeddedNode() for _ in range(3)]
    with quorlock.Locks.embedded(*nodes, trust_fresh_nodes=True) as locks:
        guard = locks.lock("orders/42", watchdog_lease=0.5).acquire()
        nodes[0].kill()
        guard.check()
        nodes[1].pause()
        assert guard.lost.wait(timeout=20) is quorlock.Lost.UNREACHABLE
        nodes[1].resume()
        nodes[0].restart()
