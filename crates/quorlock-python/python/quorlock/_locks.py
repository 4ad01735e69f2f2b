"""Clients, for threads."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Iterable, Optional

import quorlock._native as native
from ._engine import engine
from ._guard import Guard
from ._inspection import Inspection
from ._leader import Candidate, LeaderObserver
from ._lock import Lock, Semaphore
from ._source import LockSource, several

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

    from ._settings import Name, Seconds, Settings


class _Shared:
    """The clients that this process shares."""

    def __init__(self) -> None:
        self.clients: dict[tuple[str, str], Locks] = {}
        # Two threads that begin at once make one client.
        self.connecting = threading.Lock()


_shared = _Shared()


def _forget() -> None:
    global _shared
    _shared = _Shared()


os.register_at_fork(after_in_child=_forget)


class Source(LockSource[Lock, Semaphore]):
    """What locks for threads are made of."""

    __slots__ = ()

    def _lock(self, native: native.Lock, title: str) -> Lock:
        return Lock(native, title)

    def _semaphore(self, native: native.Lock, title: str) -> Semaphore:
        return Semaphore(native, title)


class Owner(Source):
    """An identity whose locks are reentrant: acquiring a held name again through it enters the hold instead of waiting.

    >>> import quorlock
    >>> owner = quorlock.Locks.embedded().owner()
    >>> with owner.lock("orders/42"), owner.lock("orders/42") as inner:
    ...     print(inner.hold_count)
    2
    """

    __slots__ = ()


class Locks(Source):
    """A client of one node, or of a majority of several nodes. It can be used by several threads.

    As a context manager it closes the client at the end of the block. A client that is open when the interpreter exits is closed then,
    which takes five seconds at most.
    """

    __slots__ = ("_client",)

    def __init__(self, client: native.Client) -> None:
        super().__init__(client)
        self._client = client

    @classmethod
    def connect(cls, address: str, *, lazy: bool = False, **settings: Unpack[Settings]) -> Locks:
        """Connects to one node: a Redis server, Sentinel group or cluster, a database, or a cluster of etcd or ZooKeeper.

        ``redis://[user:password@]host[:port][/database]``, ``rediss://`` with TLS, ``unix:///path``, ``redis+sentinel://``,
        ``redis+cluster://``, ``postgres://``, ``mysql://``, ``sqlite:/path``, ``etcd://host,host``, ``zk://host,host``. If it is ``lazy``,
        nothing is sent before the first lock.

        Raises `ConnectError` if the node cannot be used, and `ConfigError` for settings that cannot be.
        """
        return cls.quorum([address], lazy=lazy, **settings)

    @classmethod
    def quorum(cls, addresses: Iterable[str], *, lazy: bool = False, **settings: Unpack[Settings]) -> Locks:
        """Connects to a majority of independent nodes (RedLock). A minority may be down.

        New nodes grant their first lock a minute after the first client has connected, unless ``trust_fresh_nodes`` is set.

        Raises the errors of `connect`.
        """
        return cls(native.Client.connect(engine().native, several(addresses), lazy, dict(settings)).run())

    @classmethod
    def shared(cls, address: str, **settings: Unpack[Settings]) -> Locks:
        """The client of this process for this address and these settings. The first call in a process connects.

        For services whose workers are forked (gunicorn, uWSGI, Celery): a child does not get the client of its parent. It is closed when
        the interpreter exits.

        Raises the errors of `connect`.
        """
        key = address, repr(sorted(settings.items()))
        with _shared.connecting:
            locks = _shared.clients.get(key)
            if locks is None:
                locks = _shared.clients[key] = cls.connect(address, **settings)
        return locks

    @classmethod
    def majority_of_shards(cls, address: str, shards: int, **settings: Unpack[Settings]) -> Locks:
        """Connects to a majority of the shards of one cluster: an odd number, and three at least.

        Raises the errors of `connect`.
        """
        return cls(native.Client.shards(engine().native, address, shards, dict(settings)).run())

    @classmethod
    def embedded(cls, *nodes: native.EmbeddedNode, **settings: Unpack[Settings]) -> Locks:
        """Makes a client of nodes inside this process, for tests. Without nodes, it makes one."""
        made = list(nodes) or [native.EmbeddedNode()]
        return cls(native.Client.embedded(engine().native, made, dict(settings)).run())

    @classmethod
    def init(cls, address: str) -> bool:
        """Makes the table that locks need in a database, or the file of SQLite. Returns whether there is one.

        Raises `ConnectError` if the database cannot be used.
        """
        return native.init(engine().native, address).run()

    def owner(self) -> Owner:
        """A new owner: an identity whose locks are reentrant. A thread is not one."""
        return Owner(self._client.owner())

    def adopt(self, ticket: str) -> Optional[Guard]:
        """Continues the hold of a guard that another process has handed over. Returns ``None`` if nothing is left of it.

        >>> import quorlock
        >>> node = quorlock.EmbeddedNode()
        >>> web, worker = quorlock.Locks.embedded(node), quorlock.Locks.embedded(node)
        >>> ticket = web.lock("orders/42").acquire().hand_over()  # put it into the queue of jobs
        >>> guard = worker.adopt(ticket)  # in the other process
        >>> if guard is not None:
        ...     with guard:
        ...         pass  # the job

        No other client has the lock in between, and of several clients with one ticket at most one gets it. The new guard has the
        lease of the one before, counted from now on, and a larger token.

        Raises the errors of `Lock.acquire`, and `ConfigError` for a text that is no ticket.
        """
        return self._client.adopt(ticket).run(Guard)

    def leader(self, name: Name, *, watchdog_lease: Optional[Seconds] = None, rest: Optional[Seconds] = None) -> Candidate:
        """A candidate for the leadership of this name. Nothing is sent before it campaigns.

        ``rest`` is how long it waits after it has stepped down. Default: a tenth of the lease.
        """
        return Candidate(self._client, name, watchdog_lease, rest)

    def observe_leader(self, name: Name, *, every: Optional[Seconds] = None) -> LeaderObserver:
        """An observer of the leader of this name. Raises `ConfigError` if the name is invalid."""
        return LeaderObserver(self._client.observe(name, every))

    def inspect(self, name: Name) -> Inspection:
        """Reads the holder of a name from each node. Changes nothing. Raises `ConfigError` if the name is invalid."""
        return Inspection(*self._client.inspect(name).run())

    def force_release(self, name: Name) -> int:
        """Releases a name by force, whichever client holds it. Returns the number of nodes that ended a claim.

        **The holder is not asked.** It notices at its next renewal; until then, two may work at once.

        Raises `ReleaseError` if too few nodes report that the name is free.
        """
        return self._client.force_release(name).run()

    def ready(self) -> None:
        """Checks that a lock could be acquired now, for the readiness check of a service. Raises `AcquireError` if not."""
        self._client.ready().run()

    @property
    def held(self) -> int:
        """The number of holds of this client."""
        return self._client.held

    def close(self) -> None:
        """Releases everything that this client holds, and ends its acquisitions with `ClosedError`."""
        self._client.close().run()

    def __enter__(self) -> Locks:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def schema(address: str) -> Optional[str]:
    """The SQL that `Locks.init` executes, for users who may not make tables; ``None`` for an address that needs none."""
    return native.schema(address)
