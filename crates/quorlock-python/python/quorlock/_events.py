"""What happens to candidates, and what observers see. The same for threads and for asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from .errors import Lost, QuorlockError

if TYPE_CHECKING:
    import quorlock._native as native


class Leadership:
    """One term of a leader. Nothing here sends a request."""

    __slots__ = ("_native",)

    def __init__(self, native: native.Leadership) -> None:
        self._native = native

    @property
    def term(self) -> int:
        """The fencing token of the term, larger than that of every earlier leader."""
        return self._native.term

    @property
    def owner_id(self) -> str:
        """The identity under which the nodes store the claim."""
        return self._native.owner_id

    @property
    def is_leading(self) -> bool:
        """Whether the term goes on. Ask between two steps of the work."""
        return self._native.is_leading

    @property
    def validity(self) -> float:
        """For how many seconds the term stays valid without another renewal; zero if it has ended."""
        return self._native.validity

    def step_down(self) -> None:
        """Ends the term. Stop the work first. The candidacy reports the end, and goes on as a candidate."""
        self._native.step_down()

    def __repr__(self) -> str:
        return f"<Leadership of term {self.term}, {'leading' if self.is_leading else 'over'}>"


class Elected(NamedTuple):
    """The candidate was elected, and leads."""

    term: int
    """The fencing token of the term, larger than that of every earlier leader."""
    leadership: Leadership
    """The handle of the term, to check it and to step down."""


class TermLost(NamedTuple):
    """The candidate leads no longer, and is a candidate again."""

    term: int
    """The fencing token of the term that ended."""
    how: Lost
    """How it ended; `Lost.RELEASED` if the leader stepped down."""


class Failed(NamedTuple):
    """An attempt to be elected failed. The candidate tries again, unless its events end with this one."""

    error: QuorlockError
    """Why."""


LeaderEvent = Union[Elected, TermLost, Failed]
"""An event of a candidacy."""


class LeaderView(NamedTuple):
    """The leader as the nodes showed it. **A view describes the past, and promises nothing.**"""

    state: str
    """``led``, ``vacant``, ``undecided`` (an election is in progress) or ``unknown`` (too few nodes answered)."""
    owner: Optional[str]
    """The owner that leads."""
    term: Optional[int]
    """Its term, if enough nodes store the same one."""
    nodes: int
    """The number of nodes that show the owner."""


def event_of(native: Any) -> LeaderEvent:
    """The event of what the library reports."""
    what, first, *rest = native
    if what == "elected":
        return Elected(first, Leadership(rest[0]))
    if what == "lost":
        return TermLost(first, Lost(rest[0]))
    return Failed(first)
