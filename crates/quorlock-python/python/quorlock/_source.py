"""How locks are made. The same for clients and owners, for threads and for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Iterable, Optional, TypeVar, Union

from .errors import ConfigError

if TYPE_CHECKING:
    import quorlock._native as native
    from ._native import Terms
    from ._settings import Name, Seconds

LockT = TypeVar("LockT")
SemaphoreT = TypeVar("SemaphoreT")


def terms(
    wait: Optional[Seconds], lease: Optional[Seconds], watchdog_lease: Optional[Seconds], at_least: Optional[Seconds]
) -> Terms:
    """The terms of an acquisition, checked."""
    if lease is not None and watchdog_lease is not None:
        raise ConfigError("lease and watchdog_lease exclude each other: the first is not renewed, the second is")
    return wait, lease, watchdog_lease, at_least


def several(addresses: Iterable[str]) -> "list[str]":
    """The addresses of a majority, checked."""
    if isinstance(addresses, str):
        raise TypeError("addresses is an iterable of addresses, not one address: connect() takes one")
    return list(addresses)


class LockSource(Generic[LockT, SemaphoreT]):
    """What locks are made of. Making one sends nothing: a lock that cannot be raises `ConfigError` when it is acquired.

    These settings are the same for every kind of lock:

    * ``wait``: how long an acquisition waits, also during an outage of the nodes. By default it waits for as long as others hold the
      lock, and for ``without_quorum`` while no quorum answers.
    * ``lease``: a fixed lease, which is not renewed.
    * ``watchdog_lease``: the length of a lease that is renewed after every third of it. Default: that of the client, 30 s.
    * ``at_least``: how long the lock stays locked from its grant on, even if it is released earlier.

    Spans of time are seconds, or a `datetime.timedelta`.
    """

    __slots__ = ("_native",)

    def __init__(self, native: Union[native.Client, native.Owner]) -> None:
        self._native = native

    def _lock(self, native: native.Lock, title: str) -> LockT:
        raise NotImplementedError

    def _semaphore(self, native: native.Lock, title: str) -> SemaphoreT:
        raise NotImplementedError

    def lock(
        self,
        name: Name,
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> LockT:
        """A lock of this name."""
        return self._of_mode("plain", name, terms(wait, lease, watchdog_lease, at_least))

    def fair(
        self,
        name: Name,
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> LockT:
        """A fair lock of this name: first come, first served, across processes. It needs one node."""
        return self._of_mode("fair", name, terms(wait, lease, watchdog_lease, at_least))

    def read(
        self,
        name: Name,
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> LockT:
        """A read lock of this name. Any number of readers hold it at once; its token is that of the last writer."""
        return self._of_mode("read", name, terms(wait, lease, watchdog_lease, at_least))

    def write(
        self,
        name: Name,
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> LockT:
        """A write lock of this name. A writer excludes readers and other writers."""
        return self._of_mode("write", name, terms(wait, lease, watchdog_lease, at_least))

    def all(
        self,
        names: Iterable[Name],
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> LockT:
        """A lock of several names taken together: all of them or none. The order does not matter."""
        if isinstance(names, (str, bytes)):
            raise TypeError("names is an iterable of names, not one name")
        listed = list(names)
        native = self._native.all(listed, terms(wait, lease, watchdog_lease, at_least))
        return self._lock(native, ", ".join(map(str, listed)))

    def semaphore(
        self,
        name: Name,
        permits: int,
        *,
        wait: Optional[Seconds] = None,
        lease: Optional[Seconds] = None,
        watchdog_lease: Optional[Seconds] = None,
        at_least: Optional[Seconds] = None,
    ) -> SemaphoreT:
        """A semaphore of this name: up to this many holders at once, each with a permit. Make it once, and share it."""
        native = self._native.semaphore(name, permits, terms(wait, lease, watchdog_lease, at_least))
        return self._semaphore(native, f"{name!s}, {permits} permits")

    def _of_mode(self, mode: str, name: Name, terms: Terms) -> LockT:
        return self._lock(self._native.lock(mode, name, terms), str(name))
