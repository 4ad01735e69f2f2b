"""What can be acquired, for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

import quorlock._native as native
from ._guard import Guard

if TYPE_CHECKING:
    from types import TracebackType


class Acquirable(native.Entrance):
    """What locks and semaphores have in common. One object can be used by several threads."""

    __slots__ = ("_native", "_title")

    def __init__(self, native: native.Lock, title: str) -> None:
        self._native = native
        self._title = title

    def acquire(self) -> Guard:
        """Acquires it, and waits until it is free. The wait is without the interpreter, and Ctrl-C ends it.

        Raises `AcquireError`: ``contended`` if others hold it at the end of ``wait``, ``no_quorum`` and ``too_slow`` if too few nodes have
        answered in time, ``refused`` if nodes refuse in a way that waiting does not cure. Raises `ConfigError` for a name or a lease that
        cannot be. No claim is left behind.
        """
        return self._native.acquire().run(Guard)

    def try_acquire(self) -> Optional[Guard]:
        """Tries to acquire it once. Returns ``None`` if others hold it: contention is an answer, not an error.

        Raises the errors of `acquire`, after one round or two.
        """
        return self._native.try_acquire().run(Guard)

    if TYPE_CHECKING:
        # Those of `Entrance`, which call `acquire`, and release its guard.
        def __enter__(self) -> Guard: ...
        def __exit__(
            self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
        ) -> None: ...

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._title}>"


class Lock(Acquirable):
    """One lock, or several taken together. It can be acquired any number of times.

    Two acquisitions exclude each other, even through the same object, unless both go through one `Owner`. ``with lock as guard:``
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
