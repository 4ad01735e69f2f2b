"""The report of who holds a name."""

from __future__ import annotations

from typing import NamedTuple, Optional


class Inspection(NamedTuple):
    """What the nodes store under a name. It describes the past: to decide whether to work, acquire the lock instead."""

    key: str
    """The key, with the prefix of the client."""
    state: str
    """``held``, ``read``, ``queued``, ``free``, ``obstructed``, ``undecided`` or ``unknown``."""
    owner: Optional[str]
    """The owner that holds it, as `Guard.owner_id`."""
    nodes: int
    """The number of nodes that show this."""
    text: str
    """A line with the summary, and one for each node."""
    client: Optional[str]
    """The label and the address of the owner's client, if that is connected and has a ``label``."""

    def __str__(self) -> str:
        return self.text
