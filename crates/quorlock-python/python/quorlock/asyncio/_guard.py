"""The object that holds a lock, for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Awaitable, Callable, Optional, TypeVar

import quorlock._native as native
from ..errors import Lost, QuorlockError, ReleaseError
from ._port import run

if TYPE_CHECKING:
    from types import TracebackType

    from .._settings import Seconds

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

    async def wait(self) -> Lost:
        """Waits until the lock is lost, or was released. Returns how."""
        return Lost(await run(self._native.wait()))

    def add_callback(self, callback: Callable[[Lost], object]) -> asyncio.Task[None]:
        """Calls a function in the running event loop when the lock is lost, or was lost before.

        It is not called when the lock is released on purpose. Returns the task that waits: keep it, and cancel it to take the callback
        back.
        """

        async def tell() -> None:
            how = await self.wait()
            if how is not Lost.RELEASED:
                callback(how)

        return asyncio.ensure_future(tell())


class Guard(native.Held):
    """A held lock. It is renewed until it is released, or until the object is no longer used.

    Once its hold is lost, a guard stays lost, whatever happens to the name afterwards. As a context manager it releases the lock at the
    end of the block.
    """

    __slots__ = ()

    @property
    def lost(self) -> LostSignal:
        """The signal of a loss, to wait for it or to be called back."""
        return LostSignal(super()._signal())

    async def extend(self, lease: Seconds) -> None:
        """Extends the lock to this lease from now on, or to its current lease if that is longer.

        Raises `LostError` if the lock is lost, `ConfirmError` if too few nodes answered, `ConfigError` for an impossible lease. If it is
        cancelled, the lock may or may not have been extended.
        """
        await run(super()._extend(lease))

    async def reenter(self) -> Guard:
        """Enters the hold once more. The lock is released when all its guards are.

        Raises `LostError` if the lock is lost, `ConfirmError` if too few nodes answered. If it is cancelled, the hold stays as it was.
        """
        return Guard(await run(super()._reenter()))

    async def release(self) -> None:
        """Releases the lock, and waits for it. Of several guards of one hold, the last one releases it.

        Raises `ReleaseError`: ``not_held`` if the lock was lost before, so that the work may have overlapped with another holder's, and
        ``unconfirmed`` if too few nodes answered. If it is cancelled, the release continues in the background.
        """
        await run(super()._release())

    async def while_held(self, work: Awaitable[T]) -> T:
        """Runs work until the lock is lost, and keeps the lock afterwards.

        If the lock is lost, the work is cancelled, and its end is waited for. If this is cancelled, so is the work.

        Raises `LostError` if the lock was lost: the work was cancelled, or ended too late to have been protected.
        """
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self.lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        # Asked again: the last step of the work may have taken longer than the rest of the lease.
        if not self.is_held:
            _take(task)
            self.check()
        return await task

    async def __aenter__(self) -> Guard:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            await self.release()
        except ReleaseError as problem:
            # Released in the block, or it continues in the background: the work was protected.
            if problem.case == "not_held" and error is None:
                raise
        except QuorlockError:
            if error is None:
                raise


def _take(task: asyncio.Future[T]) -> None:
    """Takes the exception of work that was not protected, so that nothing reports that it was never retrieved."""
    if not task.cancelled():
        task.exception()

