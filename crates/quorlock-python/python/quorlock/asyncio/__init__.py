"""The locks of `quorlock` for ``asyncio``. What does not wait is the same; what waits is a coroutine.

>>> import asyncio
>>> import quorlock.asyncio
>>> async def ship() -> bool:
...     locks = await quorlock.asyncio.Locks.embedded()  # with a server: await Locks.connect("redis://127.0.0.1/")
...     async with locks.lock("orders/42", wait=3) as guard:
...         return guard.is_held
>>> asyncio.run(ship())
True

**Cancellation:** a cancelled acquisition leaves no claim behind, and a grant that arrives later is released. A cancelled release
continues in the background. A client can be used by several event loops, one after the other or at once.
"""

from .._events import Elected, Failed, LeaderEvent, Leadership, LeaderView, TermLost
from .._inspection import Inspection
from .._native import EmbeddedNode
from ._guard import Guard, LostSignal
from ._leader import Candidacy, Candidate, LeaderObserver
from ._lock import Lock, Semaphore
from ._locks import Locks, Owner

__all__ = [
    "Candidacy",
    "Candidate",
    "Elected",
    "EmbeddedNode",
    "Failed",
    "Guard",
    "Inspection",
    "LeaderEvent",
    "LeaderObserver",
    "LeaderView",
    "Leadership",
    "Lock",
    "Locks",
    "LostSignal",
    "Owner",
    "Semaphore",
    "TermLost",
]
