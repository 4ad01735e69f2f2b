"""A lock with the interface of redis-py's, for asyncio."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Optional
from weakref import WeakKeyDictionary

from ..errors import AcquireError, ErrorKind, LostError, ReleaseError
from ._redis_client import address_of
from ._redis_lock import Number, raise_error, raise_not_owned

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from redis.asyncio import Redis

    from .._settings import Name
    from ..asyncio import Guard, Locks

_clients: WeakKeyDictionary[Any, asyncio.Task[Locks]] = WeakKeyDictionary()
os.register_at_fork(after_in_child=_clients.clear)


def async_redis_lock(
    client: Redis,
    name: Name,
    timeout: Optional[Number] = None,
    sleep: Number = 0.1,
    blocking: bool = True,
    blocking_timeout: Optional[Number] = None,
    thread_local: bool = True,
    raise_on_release_error: bool = True,
) -> AsyncRedisLock:
    """A lock of Quorlock with the interface of ``redis.asyncio.lock.Lock``. Differences are those of `redis_lock`.

    ``thread_local`` is ignored, because tasks share a thread: make a lock for each task.
    """
    del sleep, thread_local
    return AsyncRedisLock(client, name, timeout, blocking, blocking_timeout, raise_on_release_error)


class AsyncRedisLock:
    """A lock with the interface of ``redis.asyncio.lock.Lock``. See `async_redis_lock`."""

    def __init__(
        self,
        client: Redis,
        name: Name,
        timeout: Optional[Number],
        blocking: bool,
        blocking_timeout: Optional[Number],
        raise_on_release_error: bool,
    ) -> None:
        self.redis = client
        self.name = name
        # redis-py takes zero for none, too.
        self.timeout = timeout or None
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.raise_on_release_error = raise_on_release_error
        self.guard: Optional[Guard] = None
        """The guard that holds the lock; ``None`` if this lock was not acquired."""

    async def acquire(
        self,
        blocking: Optional[bool] = None,
        blocking_timeout: Optional[Number] = None,
        token: Optional[str] = None,
    ) -> bool:
        """Acquires the lock. Returns whether it did: ``False`` if others hold it at the end of the wait."""
        if token is not None:
            raise ValueError("a token of the caller is not supported: the owner is an identity of the client")
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if not (self.blocking if blocking is None else blocking):
            wait = 0
        lock = (await _client_of(self.redis)).lock(self.name, lease=self.timeout, wait=wait)
        try:
            self.guard = await lock.acquire()
        except AcquireError as error:
            if error.kind is ErrorKind.BUSY:
                return False
            raise
        return True

    async def locked(self) -> bool:
        """Whether the name is locked, by whomever."""
        return (await (await _client_of(self.redis)).inspect(self.name)).state != "free"

    async def owned(self) -> bool:
        """Whether this lock holds the name. No request is sent."""
        return self.guard is not None and self.guard.is_held

    async def release(self) -> None:
        """Releases the lock. Raises ``LockError`` if it was not acquired, and ``LockNotOwnedError`` if it was lost."""
        guard, self.guard = self.guard, None
        if guard is None:
            raise_error("Cannot release a lock that's not owned or is already unlocked.", self.name)
        try:
            await guard.release()
        except ReleaseError as error:
            # A release that is not confirmed continues in the background.
            if error.case != "unconfirmed":
                raise_not_owned("Cannot release a lock that's no longer owned", error)

    async def extend(self, additional_time: Number, replace_ttl: bool = False) -> bool:
        """Adds this many seconds to the time that is left, or replaces it. Raises ``LockError`` and ``LockNotOwnedError``."""
        guard = self._held("Cannot extend")
        return await self._extend(guard, additional_time if replace_ttl else guard.validity + additional_time)

    async def reacquire(self) -> bool:
        """Sets the time that is left to the timeout again. Raises ``LockError`` and ``LockNotOwnedError``."""
        guard = self._held("Cannot reacquire")
        return await self._extend(guard, self.timeout or 0)

    def _held(self, failed: str) -> Guard:
        if self.guard is None:
            raise_error(f"{failed} an unlocked lock", self.name)
        if self.timeout is None:
            raise_error(f"{failed} a lock with no timeout", self.name)
        return self.guard

    async def _extend(self, guard: Guard, lease: Number) -> bool:
        try:
            await guard.extend(lease)
        except LostError as error:
            raise_not_owned("Cannot extend a lock that's no longer owned", error)
        return True

    async def __aenter__(self) -> AsyncRedisLock:
        if not await self.acquire():
            raise_error("Unable to acquire lock within the time specified", self.name)
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        from redis.exceptions import LockError

        try:
            await self.release()
        except LockError:
            if self.raise_on_release_error:
                raise
            logging.getLogger("quorlock").warning("a lock was not held any more when it was released", exc_info=True)


async def _client_of(client: Redis) -> Locks:
    """The client for the server of this client, which all its locks share. The first call connects, and others wait for it."""
    from ..asyncio import Locks

    pool = client.connection_pool
    connecting = _clients.get(pool)
    if connecting is None or connecting.done() and (connecting.cancelled() or connecting.exception() is not None):
        address, settings = address_of(pool)
        connecting = _clients[pool] = asyncio.ensure_future(Locks.connect(address, **settings))
    # Shielded: the task that asked first may be cancelled, and the others still wait.
    return await asyncio.shield(connecting)
