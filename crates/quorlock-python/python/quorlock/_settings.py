"""The settings of clients, and how spans of time are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from datetime import timedelta
    from os import PathLike

Seconds = Union[float, "timedelta"]
"""A span of time: a number of seconds, or a `datetime.timedelta`."""

Name = Union[str, bytes]
"""A name: text, which is stored in UTF-8, or bytes. 1 to 512 bytes without NUL."""

Path = Union[str, "PathLike[str]"]
"""The path of a file."""


class Settings(TypedDict, total=False):
    """The settings of a client. Each one has a safe default, and all spans are in seconds.

    >>> import quorlock
    >>> settings: quorlock.Settings = {"watchdog_lease": 10, "key_prefix": "shop:"}
    >>> locks = quorlock.Locks.embedded(**settings)
    """

    watchdog_lease: Seconds
    """The lease of locks without an explicit one. Renewed each time a third of it has passed. Default: 30 s."""
    longest_lease: Seconds
    """The longest lease that the client requests. Default: 60 s."""
    member_timeout: Seconds
    """How long each node has to answer in a round. Default: 5 % of the lease, but at least 25 ms."""
    max_hold: Seconds
    """The longest time for which a lock is held. Default: no limit."""
    token_retention: Optional[Seconds]
    """How long nodes keep the token counter of an unused name; ``None`` for ever. Default: one day."""
    node_trust: Literal["watched", "asserted_durable", "unwatched"]
    """Which nodes' votes count. Default: ``watched`` on a majority, ``unwatched`` on one node."""
    clock_margin: Seconds
    """How far a node's clock may step forward. Default: ``longest_lease`` on a majority, zero on one node."""
    trust_fresh_nodes: bool
    """Skips the minute for which new nodes of a majority are watched: for tests, and for the very first start alone."""
    watch_claims: bool
    """Whether a hold learns at once that its claim was removed by others, and not at its next renewal. Redis 6 and later. Default: true."""
    label: str
    """A name by which people recognize this client in `Inspection.client`: 1 to 100 printable ASCII characters without spaces."""
    namespace: Union[str, bytes]
    """The first part of every key and channel of this client on the server, for its rights: without braces. Default: empty."""
    key_prefix: Union[str, bytes]
    """The first part of the key of every name. Default: empty."""
    wait_for_servers: Seconds
    """How long connecting waits for servers that cannot be reached. Default: not at all."""
    backoff: Seconds
    """Bound of the first pause after a failed round. Default: 10 ms."""
    backoff_cap: Seconds
    """Bound of every pause after a failed round. Default: 1 s."""
    without_quorum: Seconds
    """How long an acquisition without a ``wait`` continues while no quorum answers. Default: 30 s."""
    poll_cap: Seconds
    """A waiter asks again after this time even if nothing wakes it. Default: 5 s."""
    connect_timeout: Seconds
    """Bound of making one connection to Redis."""
    call_timeout: Seconds
    """Bound of one call to Redis, beyond the round that waits for it."""
    ping_interval: Seconds
    """How often an idle connection to Redis is tested."""
    linger: Seconds
    """How long the connection for wake-ups stays open after the last waiter has left. Default: 30 s."""
    sentinel_timeout: Seconds
    """Bound of one query to a sentinel. Default: 300 ms."""
    only_scripts: bool
    """Whether every request is a script. Otherwise a free name of one server needs none. Default: false."""
    user: str
    """The user of addresses that have no password; with ``password`` or ``password_file``."""
    password: str
    """The password of addresses that have none."""
    password_file: Path
    """A file with the password, which is read again when it changes."""
    tls_ca: Path
    """A file in PEM with the authorities to trust in place of those of the system, for ``rediss://``."""
    tls_server_name: str
    """The name that certificates must have, in place of the host's."""
    tls_certificate: Path
    """A file in PEM with the certificate of the client; with ``tls_key``."""
    tls_key: Path
    """A file in PEM with the private key of the client."""
    replicas: int
    """How many replicas must have a write before it counts; with ``replicas_within``."""
    replicas_within: Seconds
    """How long the server waits for the replicas."""
    on_disk: bool
    """Whether the write must be on disk there (Redis 7.2 and later)."""
