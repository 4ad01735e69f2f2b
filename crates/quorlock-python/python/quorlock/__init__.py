"""Distributed locks on Redis, PostgreSQL, MySQL, SQLite, etcd and ZooKeeper.

>>> import quorlock
>>> locks = quorlock.Locks.embedded()  # with a server: quorlock.Locks.connect("redis://127.0.0.1/")
>>> with locks.lock("orders/42", wait=3) as guard:
...     token = guard.token  # a store that compares tokens rejects a stale holder
...     guard.check()        # is it still held? between two steps of the work

A thread of the library renews the lock until the block ends. It never waits for the interpreter, so a lock is not lost while Python
computes. The same locks for ``asyncio`` are in `quorlock.asyncio`.

**Promised:** while a guard reports that it is held, no other client holds the lock. This needs clocks whose rates differ by less than
1 %, and on a single server one that keeps its data. **Not promised:** a process that is suspended in the middle of a write does not
notice that its lease has expired. Only a store that compares tokens rejects that write.

**fork:** a child process neither uses nor releases what its parent holds: every object of the parent raises `ForkedError` in it. The
child connects anew.

================================  =====================================================
connecting, settings              `Locks`, `Settings`
acquiring                         `Lock`, `Semaphore`, `Owner`
holding, losing, releasing        `Guard`, `LostSignal`
electing a leader, observing it   `Candidate`, `Candidacy`, `Leadership`, `LeaderObserver`
errors                            `QuorlockError` and its subclasses; `ErrorKind`, `Lost`
without a server                  `EmbeddedNode`
in place of redis-py's lock       `quorlock.compat.redis_lock`
simulations                       `quorlock.sim`
================================  =====================================================
"""

from ._events import Elected, Failed, LeaderEvent, Leadership, LeaderView, TermLost
from ._guard import Guard, LostSignal
from ._inspection import Inspection
from ._leader import Candidacy, Candidate, LeaderObserver
from ._lock import Lock, Semaphore
from ._locks import Locks, Owner, schema
from ._native import EmbeddedNode
from ._settings import Seconds, Settings
from .errors import (
    AcquireError,
    ClosedError,
    ConfigError,
    ConfirmError,
    ConnectError,
    ErrorKind,
    ForkedError,
    HandOverError,
    Lost,
    LostError,
    QuorlockError,
    ReleaseError,
)

__all__ = [
    "AcquireError",
    "Candidacy",
    "Candidate",
    "ClosedError",
    "ConfigError",
    "ConfirmError",
    "ConnectError",
    "Elected",
    "EmbeddedNode",
    "ErrorKind",
    "Failed",
    "ForkedError",
    "Guard",
    "HandOverError",
    "Inspection",
    "LeaderEvent",
    "LeaderObserver",
    "LeaderView",
    "Leadership",
    "Lock",
    "Locks",
    "Lost",
    "LostError",
    "LostSignal",
    "Owner",
    "QuorlockError",
    "ReleaseError",
    "Seconds",
    "Semaphore",
    "Settings",
    "TermLost",
    "schema",
]
