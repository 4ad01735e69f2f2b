"""Leader election, for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, AsyncIterator, Awaitable, Callable, Optional, TypeVar

from .._events import Elected, Failed, LeaderEvent, Leadership, LeaderView, TermLost, event_of
from ..errors import ClosedError, QuorlockError
from ._port import run

if TYPE_CHECKING:
    from types import TracebackType

    import quorlock._native as native
    from .._settings import Name, Seconds

T = TypeVar("T")


class Candidacy:
    """A campaigning candidate, as a stream of events. **A candidate that does not wait for the next event is not elected.**

    A term is renewed while its leader works. The end of the ``async with`` block ends the candidacy and releases the name.
    """

    __slots__ = ("_native",)

    def __init__(self, native: native.Candidacy) -> None:
        self._native = native

    def __aiter__(self) -> AsyncIterator[LeaderEvent]:
        return self

    async def __anext__(self) -> LeaderEvent:
        event = await run(self._native.next())
        if event is None:
            raise StopAsyncIteration
        return event_of(event)

    async def resign(self) -> None:
        """Ends the candidacy, and the leadership with it. Stop the work first. Raises `ReleaseError` like `Guard.release`."""
        await run(self._native.resign())

    async def __aenter__(self) -> Candidacy:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            await self.resign()
        except QuorlockError:
            if error is None:
                raise


class Candidate:
    """A candidate for the leadership of a name, which is the ordinary lock of that name."""

    __slots__ = ("_client", "_name", "_rest", "_watchdog_lease")

    def __init__(
        self, client: native.Client, name: Name, watchdog_lease: Optional[Seconds], rest: Optional[Seconds]
    ) -> None:
        self._client, self._name = client, name
        self._watchdog_lease, self._rest = watchdog_lease, rest

    def campaign(self) -> Candidacy:
        """Starts to campaign."""
        return Candidacy(self._client.campaign(self._name, self._watchdog_lease, self._rest))

    async def run_while_leader(self, work: Callable[[Leadership], Awaitable[T]]) -> T:
        """Runs work for as long as this candidate leads, in each of its terms, until it ends in one. Returns what it returned.

        When a term ends, the work is cancelled and its end is waited for. If this is cancelled, so is the work, and the name is released.

        Raises `ConfigError` for a name that cannot be, and `ClosedError` if the client was closed.
        """
        async with self.campaign() as candidacy:
            failure: QuorlockError = ClosedError("the client was closed", kind="closed", case="closed")
            async for event in candidacy:
                if isinstance(event, Failed):
                    failure = event.error
                elif isinstance(event, Elected):
                    task = asyncio.ensure_future(work(event.leadership))
                    if await _leads(candidacy, task):
                        return await task
            raise failure


async def _leads(candidacy: Candidacy, task: asyncio.Future[T]) -> bool:
    """Runs work in a term. Returns whether it ended in the term."""
    end = asyncio.ensure_future(_end(candidacy))
    try:
        await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            return True
        task.cancel()
        await asyncio.wait((task,))
        return False
    finally:
        for one in (task, end):
            if not one.done():
                one.cancel()
                await asyncio.wait((one,))


async def _end(candidacy: Candidacy) -> None:
    """Waits for the end of a term."""
    async for event in candidacy:
        if isinstance(event, TermLost):
            break


class LeaderObserver:
    """The leaders of a name as the nodes show them, one after the other. It is not a candidate itself."""

    __slots__ = ("_native",)

    def __init__(self, native: native.Observer) -> None:
        self._native = native

    def __aiter__(self) -> AsyncIterator[LeaderView]:
        return self

    async def __anext__(self) -> LeaderView:
        view = await run(self._native.next())
        if view is None:
            raise StopAsyncIteration
        return LeaderView(*view)
