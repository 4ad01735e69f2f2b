"""The errors of the package: one family, whose members say what a caller can do (`QuorlockError.kind`)."""

from enum import Enum
from typing import Sequence


class ErrorKind(str, Enum):
    """What a caller can do about an error."""

    BUSY = "busy"
    """Others hold the lock: wait longer, or do something else."""
    UNAVAILABLE = "unavailable"
    """The nodes do not answer, or not in time, or do not count yet: try again later."""
    MISCONFIGURED = "misconfigured"
    """Trying again does not help: the program, its settings or those of the servers must change."""
    CLOSED = "closed"
    """The client was closed: the program is about to end."""
    LOST = "lost"
    """The lock is held no longer: stop the work."""
    FORKED = "forked"
    """The object belongs to the parent of this process: connect anew."""

    @property
    def http_status(self) -> int:
        """The status with which an HTTP service answers a request that it cannot execute without the lock.

        >>> ErrorKind.BUSY.http_status
        409
        """
        return {"busy": 409, "unavailable": 503, "closed": 503}.get(self.value, 500)


class Lost(str, Enum):
    """How a hold ended."""

    EXPIRED = "expired"
    """The lease ran out: nothing renewed it, or it reached the longest hold."""
    TAKEN = "taken"
    """Nodes answered that the claim is not ours: it expired there, was flushed or released by force."""
    UNREACHABLE = "unreachable"
    """The lease ran out while too many nodes did not answer renewals."""
    CLOSED = "closed"
    """The client that held it was closed."""
    RELEASED = "released"
    """The lock was released on purpose."""
    OTHER = "other"


class QuorlockError(Exception):
    """What all errors of the package have. No message contains a password."""

    kind: ErrorKind
    """What a caller can do."""
    case: str
    """Which error of its class it is, such as ``contended`` or ``no_quorum``."""
    nodes: "tuple[str, ...]"
    """One line for each node that failed, with its address and its error."""

    def __init__(
        self, message: str, *, kind: str = "misconfigured", case: str = "other", nodes: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.kind = ErrorKind(kind)
        self.case = case
        self.nodes = tuple(nodes)

    def __reduce__(self) -> "tuple[object, ...]":
        return _restored, (type(self), str(self), self.kind.value, self.case, self.nodes)


def _restored(error: "type[QuorlockError]", message: str, kind: str, case: str, nodes: Sequence[str]) -> QuorlockError:
    return error(message, kind=kind, case=case, nodes=nodes)


class AcquireError(QuorlockError):
    """A lock was not acquired. Nothing stays behind: what nodes granted is released.

    Cases: ``contended``, ``no_quorum``, ``too_slow``, ``refused``, ``other_mode``, ``overlap``, ``upgrade``, ``too_many_entries``.
    """


class ReleaseError(QuorlockError):
    """A release was not confirmed.

    Cases: ``not_held`` (the work may have overlapped with another holder's), ``unconfirmed`` (too few nodes answered: the release
    continues in the background), ``released`` (the guard was released before).
    """


class ConfirmError(QuorlockError):
    """An extension or a re-entry was not confirmed. The lock is still held, and its validity is unchanged.

    Cases: ``unconfirmed``, ``too_many_entries``.
    """


class HandOverError(QuorlockError):
    """A lock was not handed over. The guard holds it as before.

    Cases: ``shared`` (other guards share the hold, or its owner reads beside it), ``reads`` (a read lock), ``several_clients``.
    """


class LostError(QuorlockError):
    """The lock is lost, or the guard was released. The case is the value of `Lost`."""

    @property
    def how(self) -> Lost:
        """How the lock was lost."""
        return Lost(self.case)


class ConnectError(QuorlockError):
    """A client was not made. Cases: ``nodes``, ``address``, ``feature``, ``thread``."""


class ConfigError(QuorlockError, ValueError):
    """A name, a setting or a ticket is invalid, or settings do not fit together. Cases: ``setting``, ``ticket``."""


class ClosedError(QuorlockError):
    """The client was closed, or the interpreter is exiting."""


class ForkedError(QuorlockError, RuntimeError):
    """The object was made by the parent of this process, which still uses it. Connect anew in the child."""
