"""The lock with redis-py's interface, beside redis-py's own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, Iterator

import pytest
import redis
import redis.asyncio
from redis.exceptions import LockError, LockNotOwnedError
from servers import Server, until

import quorlock
from quorlock.compat import async_redis_lock, redis_lock

Make = Callable[..., Any]


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    made = redis.Redis(port=server.port)
    yield made
    made.close()


@pytest.fixture(params=["redis-py", "quorlock"])
def make(request: pytest.FixtureRequest, client: redis.Redis) -> Make:
    """Makes locks: redis-py's and ours must pass the same tests."""
    if request.param == "redis-py":
        return lambda name, **settings: client.lock(name, **settings)
    return lambda name, **settings: redis_lock(client, name, **settings)


def test_a_lock_is_acquired_and_released(make: Make, name: str) -> None:
    lock, other = make(name, timeout=20), make(name, timeout=20)
    assert not lock.locked() and not lock.owned()
    assert lock.acquire() is True
    assert lock.locked() and lock.owned()
    assert other.locked() and not other.owned()
    assert other.acquire(blocking=False) is False
    assert other.acquire(blocking_timeout=0.05) is False
    lock.release()
    assert not lock.locked()
    assert other.acquire(blocking=False) is True
    other.release()


def test_what_is_not_held_is_not_released_or_extended(make: Make, name: str) -> None:
    lock = make(name, timeout=20)
    for call in (lock.release, lambda: lock.extend(1), lock.reacquire):
        with pytest.raises(LockError):
            call()
    endless = make(name)
    with endless:
        for call in (lambda: endless.extend(1), endless.reacquire):
            with pytest.raises(LockError, match="no timeout"):
                call()


def test_a_lock_that_ran_out_is_not_owned(make: Make, name: str) -> None:
    lock = make(name, timeout=0.1)
    lock.acquire()
    until(lambda: not lock.owned())
    for call in (lambda: lock.extend(1), lock.reacquire, lock.release):
        with pytest.raises(LockNotOwnedError):
            call()
    with pytest.raises(LockError), make(name, timeout=0.1) as lock:
        until(lambda: not lock.owned())


def test_a_lock_is_extended(make: Make, name: str, client: redis.Redis) -> None:
    with make(name, timeout=10) as lock:
        assert lock.extend(5) is True
        assert 14_000 < client.pttl(name) <= 15_100
        assert lock.extend(30, replace_ttl=True) is True
        assert 29_000 < client.pttl(name) <= 30_100


def test_with_raises_when_the_wait_is_over(make: Make, name: str) -> None:
    with make(name, timeout=20), pytest.raises(LockError, match="within the time specified"):
        with make(name, timeout=20, blocking_timeout=0.05):
            pass


def test_a_lock_belongs_to_a_thread(make: Make, name: str) -> None:
    results: list[bool] = []
    lock, shared = make(name, timeout=20), make(name + "/shared", timeout=20, thread_local=False)

    def look() -> None:
        try:
            lock.release()
        except (LockError, AttributeError):  # redis-py forgets to give other threads a token
            results.append(True)
        shared.release()

    with lock:
        shared.acquire()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert results == [True]
    assert not shared.locked()


def test_a_release_error_can_be_a_warning(make: Make, name: str) -> None:
    with make(name, timeout=0.1, raise_on_release_error=False) as lock:
        until(lambda: not lock.owned())


def test_without_a_timeout_the_lock_is_renewed_and_tells_of_its_loss(client: redis.Redis, name: str) -> None:
    with redis_lock(client, name) as lock:
        guard = lock.guard
        assert guard is not None
        assert 0 < guard.token
        assert not guard.lost.is_set()
        assert 0 < client.pttl(name) <= 30_000
    assert lock.guard is None


def test_what_is_not_supported_is_refused(client: redis.Redis, name: str) -> None:
    with pytest.raises(ValueError, match="token of the caller"):
        redis_lock(client, name).acquire(token="mine")
    with pytest.raises(quorlock.ConfigError, match="longest_lease"):
        redis_lock(client, name, timeout=13 * 60 * 60).acquire()
    client.set(name, "of redis-py", ex=20)
    with pytest.raises(quorlock.AcquireError) as caught:
        redis_lock(client, name).acquire()
    assert caught.value.case == "refused"


def test_the_login_of_a_client_is_used(new_server: Callable[..., Server], tmp_path: Any) -> None:
    server = new_server("--requirepass", "pass word", "--unixsocket", str(tmp_path / "s"))
    clients = [
        redis.Redis(port=server.port, password="pass word", db=3),
        redis.Redis.from_url(f"redis://default:pass%20word@127.0.0.1:{server.port}/3"),
        redis.Redis(unix_socket_path=str(tmp_path / "s"), password="pass word", db=3),
    ]
    for client in clients:
        with redis_lock(client, "orders/42"):
            assert client.exists("orders/42")
            assert clients[0].exists("orders/42")
        client.close()


@pytest.mark.parametrize("kind", ["redis-py", "quorlock"])
def test_a_lock_for_asyncio_behaves_alike(server: Server, name: str, kind: str) -> None:
    async def main() -> None:
        client = redis.asyncio.Redis(port=server.port)

        def make(**settings: Any) -> Any:
            return client.lock(name, **settings) if kind == "redis-py" else async_redis_lock(client, name, **settings)

        lock, other = make(timeout=20), make(timeout=20, blocking_timeout=0.05)
        assert not await lock.locked()
        async with lock:
            assert await lock.locked() and await lock.owned() and not await other.owned()
            assert await other.acquire() is False
            assert await other.acquire(blocking=False) is False
            assert await lock.extend(5) is True
            assert 24_000 < await client.pttl(name) <= 25_100
            assert await lock.reacquire() is True
            with pytest.raises(LockError, match="within the time specified"):
                async with other:
                    pass
        for call in (lock.release, lambda: lock.extend(1), lock.reacquire):
            with pytest.raises(LockError):
                await call()
        endless = make()
        async with endless:
            with pytest.raises(LockError, match="no timeout"):
                await endless.reacquire()
        with pytest.raises(LockNotOwnedError):
            async with make(timeout=0.1) as short:
                while await short.owned():
                    await asyncio.sleep(0.01)
        async with make(timeout=0.1, raise_on_release_error=False) as short:
            while await short.owned():
                await asyncio.sleep(0.01)
        many = [make(timeout=20) for _ in range(10)]
        await asyncio.gather(*(_use(one) for one in many))
        await client.aclose()

    async def _use(lock: Any) -> None:
        async with lock:
            assert await lock.owned()

    asyncio.run(main())
