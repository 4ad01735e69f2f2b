"""A lock with the interface of redis-py's."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Union

from ..errors import AcquireError, ErrorKind, LostError, QuorlockError, ReleaseError
from ._redis_client import client_of

if TYPE_CHECKING:
    from types import TracebackType

    from redis import Redis

    from .._guard import Guard
    from .._settings import Name

Number = Union[int, float]


def redis_lock(
    client: Redis,
    name: Name,
    timeout: Optional[Number] = None,
    sleep: Number = 0.1,
    blocking: bool = True,
    blocking_timeout: Optional[Number] = None,
    thread_local: bool = True,
    raise_on_release_error: bool = True,
) -> RedisLock:
    """A lock of Quorlock with the interface of ``redis.lock.Lock``, for ``redis_lock(client, ..)`` in place of ``client.lock(..)``.

    **Both kinds of lock do not exclude each other.** redis-py stores a string, and Quorlock a hash: who finds the other's key gets an
    error. Change all programs that use a name at once, or the name.

    Arguments and errors (``redis.exceptions.LockError``, ``LockNotOwnedError``) are redis-py's, and so is what they mean, except:

    * without a ``timeout``, the lock is renewed until it is released, and ends with the process: redis-py's stays locked for ever;
    * ``sleep`` is ignored, because a waiter is woken by the release;
    * a ``token`` of the caller is refused, because the owner is an identity of the client;
    * a ``timeout`` is 12 hours at most.

    `RedisLock.guard` has what redis-py's lock lacks: the signal of a loss and the fencing token.
    """
    del sleep
    return RedisLock(client, name, timeout, blocking, blocking_timeout, thread_local, raise_on_release_error)


class RedisLock:
    """A lock with the interface of ``redis.lock.Lock``. See `redis_lock`."""

    def __init__(
        self,
        client: Redis,
        name: Name,
        timeout: Optional[Number],
        blocking: bool,
        blocking_timeout: Optional[Number],
        thread_local: bool,
        raise_on_release_error: bool,
    ) -> None:
        self.redis = client
        self.name = name
        # redis-py takes zero for none, too.
        self.timeout = timeout or None
        self.blocking = blocking
        self.blocking_timeout = blocking_timeout
        self.raise_on_release_error = raise_on_release_error
        self.local: Any = threading.local() if thread_local else SimpleNamespace()

    @property
    def guard(self) -> Optional[Guard]:
        """The guard that holds the lock; ``None`` if this lock (in this thread, if it is ``thread_local``) was not acquired."""
        return getattr(self.local, "guard", None)

    def acquire(
        self,
        sleep: Optional[Number] = None,
        blocking: Optional[bool] = None,
        blocking_timeout: Optional[Number] = None,
        token: Optional[str] = None,
    ) -> bool:
        """Acquires the lock. Returns whether it did: ``False`` if others hold it at the end of the wait.

        Raises the errors of `quorlock.Lock.acquire` for what is not contention.
        """
        if token is not None:
            raise ValueError("a token of the caller is not supported: the owner is an identity of the client")
        wait = self.blocking_timeout if blocking_timeout is None else blocking_timeout
        if not (self.blocking if blocking is None else blocking):
            wait = 0
        lock = client_of(self.redis).lock(self.name, lease=self.timeout, wait=wait)
        try:
            self.local.guard = lock.acquire()
        except AcquireError as error:
            if error.kind is ErrorKind.BUSY:
                return False
            raise
        return True

    def locked(self) -> bool:
        """Whether the name is locked, by whomever."""
        return client_of(self.redis).inspect(self.name).state != "free"

    def owned(self) -> bool:
        """Whether this lock holds the name. No request is sent."""
        return self.guard is not None and self.guard.is_held

    def release(self) -> None:
        """Releases the lock. Raises ``LockError`` if it was not acquired, and ``LockNotOwnedError`` if it was lost."""
        guard = self._taken("Cannot release a lock that's not owned or is already unlocked.")
        self.local.guard = None
        try:
            guard.release()
        except ReleaseError as error:
            # A release that is not confirmed continues in the background.
            if error.case != "unconfirmed":
                raise_not_owned("Cannot release a lock that's no longer owned", error)

    def extend(self, additional_time: Number, replace_ttl: bool = False) -> bool:
        """Adds this many seconds to the time that is left, or replaces it. Raises ``LockError`` and ``LockNotOwnedError``."""
        guard = self._taken("Cannot extend an unlocked lock", "Cannot extend a lock with no timeout")
        self._extend(guard, additional_time if replace_ttl else guard.validity + additional_time)
        return True

    def reacquire(self) -> bool:
        """Sets the time that is left to the timeout again. Raises ``LockError`` and ``LockNotOwnedError``."""
        guard = self._taken("Cannot reacquire an unlocked lock", "Cannot reacquire a lock with no timeout")
        assert self.timeout is not None, "it was checked"
        self._extend(guard, self.timeout)
        return True

    def _taken(self, unlocked: str, endless: Optional[str] = None) -> Guard:
        guard = self.guard
        if guard is None:
            raise_error(unlocked, self.name)
        if endless is not None and self.timeout is None:
            raise_error(endless, self.name)
        return guard

    def _extend(self, guard: Guard, lease: Number) -> None:
        try:
            guard.extend(lease)
        except LostError as error:
            raise_not_owned("Cannot extend a lock that's no longer owned", error)

    def __enter__(self) -> RedisLock:
        if not self.acquire():
            raise_error("Unable to acquire lock within the time specified", self.name)
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        from redis.exceptions import LockError

        try:
            self.release()
        except LockError:
            if self.raise_on_release_error:
                raise
            logging.getLogger("quorlock").warning("a lock was not held any more when it was released", exc_info=True)


def raise_error(message: str, name: Name) -> NoReturn:
    """Raises redis-py's error of a lock."""
    from redis.exceptions import LockError

    raise LockError(message, lock_name=str(name))


def raise_not_owned(message: str, cause: QuorlockError) -> NoReturn:
    """Raises redis-py's error of a lock that was lost."""
    from redis.exceptions import LockNotOwnedError

    raise LockNotOwnedError(message) from cause
