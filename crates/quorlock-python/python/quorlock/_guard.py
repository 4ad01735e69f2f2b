"""The object that holds a lock, for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Optional, TypeVar

import quorlock._native as native
from ._engine import engine
from .errors import Lost

if TYPE_CHECKING:
    from ._settings import Seconds

T = TypeVar("T")


class LostSignal:
    """Tells when a lock is lost: by the end of its validity at the latest, even if no node answers.

    It belongs to the hold, which ends with the last of its guards, and does not hold the lock itself.
    """

    __slots__ = ("_native",)

    def __init__(self, signal: native.Signal) -> None:
        self._native = signal

    def is_set(self) -> bool:
        """Whether the lock is lost, or was released. No request is sent."""
        return self._native.how() is not None

    @property
    def how(self) -> Optional[Lost]:
        """How the lock was lost; ``None`` while it is held."""
        how = self._native.how()
        return None if how is None else Lost(how)

    def wait(self, timeout: Optional[Seconds] = None) -> Optional[Lost]:
        """Waits until the lock is lost, or was released, but no longer than this. Returns how, or ``None``."""
        how = self._native.wait(timeout).run()
        return None if how is None else Lost(how)

    def add_callback(self, callback: Callable[[Lost], object]) -> None:
        """Calls a function when the lock is lost, or was lost before, on the thread of all callbacks.

        It is not called when the lock is released on purpose. It must not block for long, because other callbacks wait for it. The
        thread needs the interpreter: code that holds it delays the call, but not the renewals.
        """
        engine().when_lost(self._native.wait(), callback)


class Guard(native.HeldByThread):
    """A held lock. It is renewed until it is released, or until the object is no longer used.

    Once its hold is lost, a guard stays lost, whatever happens to the name afterwards. As a context manager it releases the lock at the
    end of the block.
    """

    __slots__ = ()

    @property
    def lost(self) -> LostSignal:
        """The signal of a loss, to wait for it or to be called back."""
        return LostSignal(super()._signal())

    def extend(self, lease: Seconds) -> None:
        """Extends the lock to this lease from now on, or to its current lease if that is longer.

        Raises `LostError` if the lock is lost, `ConfirmError` if too few nodes answered, `ConfigError` for an impossible lease.
        """
        super()._extend(lease).run()

    def reenter(self) -> Guard:
        """Enters the hold once more. The lock is released when all its guards are.

        Raises `LostError` if the lock is lost, `ConfirmError` if too few nodes answered.
        """
        return super()._reenter().run(Guard)

    def release(self) -> None:
        """Releases the lock, and waits for it. Of several guards of one hold, the last one releases it.

        Raises `ReleaseError`: ``not_held`` if the lock was lost before, so that the work may have overlapped with another holder's, and
        ``unconfirmed`` if too few nodes answered, when the release continues in the background. An interrupt does not stop it either.
        """
        super()._release().run()

    def while_held(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items while the lock is held: it is checked before each item, and after the last one.

        >>> import quorlock
        >>> locks = quorlock.Locks.embedded()
        >>> with locks.lock("report") as guard:
        ...     for row in guard.while_held(range(3)):
        ...         print(row)
        0
        1
        2

        Raises `LostError` in place of the next item if the lock is lost.
        """
        for item in items:
            self.check()
            yield item
        self.check()
