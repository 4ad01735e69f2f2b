"""Clients, for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Optional

import quorlock._native as native
from .._engine import engine
from .._inspection import Inspection
from .._source import LockSource, several
from ._guard import Guard
from ._leader import Candidate, LeaderObserver
from ._lock import Lock, Semaphore
from ._port import run

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

    from .._settings import Name, Seconds, Settings


class Source(LockSource[Lock, Semaphore]):
    """What locks for asyncio are made of."""

    __slots__ = ()

    def _lock(self, native: native.Lock, title: str) -> Lock:
        return Lock(native, title)

    def _semaphore(self, native: native.Lock, title: str) -> Semaphore:
        return Semaphore(native, title)


class Owner(Source):
    """An identity whose locks are reentrant: acquiring a held name again through it enters the hold instead of waiting."""

    __slots__ = ()


class Locks(Source):
    """A client of one node, or of a majority of several nodes. See `quorlock.Locks`.

    ``async with await Locks.connect(..) as locks:`` closes the client at the end of the block. A client that is open when the
    interpreter exits is closed then.
    """

    __slots__ = ("_client",)

    def __init__(self, client: native.Client) -> None:
        super().__init__(client)
        self._client = client

    @classmethod
    async def connect(cls, address: str, *, lazy: bool = False, **settings: Unpack[Settings]) -> Locks:
        """Connects to one node. Addresses and errors are those of `quorlock.Locks.connect`."""
        return await cls.quorum([address], lazy=lazy, **settings)

    @classmethod
    async def quorum(cls, addresses: Iterable[str], *, lazy: bool = False, **settings: Unpack[Settings]) -> Locks:
        """Connects to a majority of independent nodes. See `quorlock.Locks.quorum`."""
        return cls(await run(native.Client.connect(engine().native, several(addresses), lazy, dict(settings))))

    @classmethod
    async def majority_of_shards(cls, address: str, shards: int, **settings: Unpack[Settings]) -> Locks:
        """Connects to a majority of the shards of one cluster. See `quorlock.Locks.majority_of_shards`."""
        return cls(await run(native.Client.shards(engine().native, address, shards, dict(settings))))

    @classmethod
    async def embedded(cls, *nodes: native.EmbeddedNode, **settings: Unpack[Settings]) -> Locks:
        """Makes a client of nodes inside this process, for tests. Without nodes, it makes one."""
        made = list(nodes) or [native.EmbeddedNode()]
        return cls(await run(native.Client.embedded(engine().native, made, dict(settings))))

    @classmethod
    async def init(cls, address: str) -> bool:
        """Makes the table that locks need in a database. See `quorlock.Locks.init`."""
        return await run(native.init(engine().native, address))

    def owner(self) -> Owner:
        """A new owner: an identity whose locks are reentrant. A task is not one."""
        return Owner(self._client.owner())

    async def adopt(self, ticket: str) -> Optional[Guard]:
        """Continues the hold of a guard that was handed over, or returns ``None``. See `quorlock.Locks.adopt`.

        If it is cancelled, the lock is released in the background, or stays as it was.
        """
        grant = await run(self._client.adopt(ticket))
        return None if grant is None else Guard(grant)

    def leader(self, name: Name, *, watchdog_lease: Optional[Seconds] = None, rest: Optional[Seconds] = None) -> Candidate:
        """A candidate for the leadership of this name. Nothing is sent before it campaigns."""
        return Candidate(self._client, name, watchdog_lease, rest)

    def observe_leader(self, name: Name, *, every: Optional[Seconds] = None) -> LeaderObserver:
        """An observer of the leader of this name. Raises `ConfigError` if the name is invalid."""
        return LeaderObserver(self._client.observe(name, every))

    async def inspect(self, name: Name) -> Inspection:
        """Reads the holder of a name from each node. Changes nothing. Raises `ConfigError` if the name is invalid."""
        return Inspection(*await run(self._client.inspect(name)))

    async def force_release(self, name: Name) -> int:
        """Releases a name by force. See `quorlock.Locks.force_release`."""
        return await run(self._client.force_release(name))

    async def ready(self) -> None:
        """Checks that a lock could be acquired now. Raises `AcquireError` if not."""
        await run(self._client.ready())

    @property
    def held(self) -> int:
        """The number of holds of this client."""
        return self._client.held

    async def close(self) -> None:
        """Releases everything that this client holds, and ends its acquisitions with `ClosedError`."""
        await run(self._client.close())

    async def __aenter__(self) -> Locks:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self.close()
