"""What can be acquired, for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Optional
from weakref import WeakKeyDictionary

from ._guard import Guard
from ._port import run

if TYPE_CHECKING:
    from types import TracebackType

    import quorlock._native as native


class Acquirable:
    """What locks and semaphores have in common. One object can be used by several tasks."""

    __slots__ = ("_entered", "_native", "_title")

    def __init__(self, native: native.Lock, title: str) -> None:
        self._native = native
        self._title = title
        # The guards of each task that is in a block.
        self._entered: Optional[WeakKeyDictionary[asyncio.Task[Any], list[Guard]]] = None

    async def acquire(self) -> Guard:
        """Acquires it, and waits until it is free.

        Raises `AcquireError`: ``contended`` if others hold it at the end of ``wait``, ``no_quorum`` and ``too_slow`` if too few nodes have
        answered in time, ``refused`` if nodes refuse in a way that waiting does not cure. Raises `ConfigError` for a name or a lease that
        cannot be. No claim is left behind, neither by an error nor by a cancellation.
        """
        return Guard(await run(self._native.acquire()))

    async def try_acquire(self) -> Optional[Guard]:
        """Tries to acquire it once. Returns ``None`` if others hold it: contention is an answer, not an error.

        Raises the errors of `acquire`, after one round or two.
        """
        grant = await run(self._native.try_acquire())
        return None if grant is None else Guard(grant)

    async def __aenter__(self) -> Guard:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        guard = Guard(await run(self._native.acquire()))
        if self._entered is None:
            self._entered = WeakKeyDictionary()
        self._entered.setdefault(task, []).append(guard)
        return guard

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        task = asyncio.current_task()
        assert task is not None and self._entered is not None, "it was entered by a task"
        guards = self._entered[task]
        guard = guards.pop()
        if not guards:
            del self._entered[task]
        await guard.__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._title}>"


class Lock(Acquirable):
    """One lock, or several taken together. It can be acquired any number of times.

    Two acquisitions exclude each other, even through the same object, unless both go through one `Owner`. ``async with lock as guard:``
    acquires it and releases it at the end of the block. If it was lost by then, that raises `ReleaseError`.
    """

    __slots__ = ()

    def together_with(self, *others: Lock) -> Lock:
        """A lock that takes other locks together with this one, in any modes and of any clients: all of them or none.

        Lease and wait are those of this one.
        """
        native = self._native.and_([other._native for other in others])
        return Lock(native, ", ".join([self._title, *(other._title for other in others)]))


class Semaphore(Acquirable):
    """A number of permits under one name, each of which can have one holder.

    Every permit is a lock of its own, with a token that counts its holds. The number of permits belongs to each client.
    """

    __slots__ = ()
