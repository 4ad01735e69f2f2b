"""Leader election, for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Optional

from ._events import LeaderEvent, LeaderView, event_of

if TYPE_CHECKING:
    from types import TracebackType

    import quorlock._native as native
    from ._settings import Name, Seconds


class Candidacy:
    """A campaigning candidate, whose events are waited for one after the other. **A candidate that does not wait is not elected.**

    A term is renewed while its leader works, and `Leadership.is_leading` tells between two steps of the work. The end of the ``with``
    block ends the candidacy and releases the name.
    """

    __slots__ = ("_native",)

    def __init__(self, native: native.Candidacy) -> None:
        self._native = native

    def __iter__(self) -> Iterator[LeaderEvent]:
        return self

    def __next__(self) -> LeaderEvent:
        event = self._native.next().run()
        if event is None:
            raise StopIteration
        return event_of(event)

    def resign(self) -> None:
        """Ends the candidacy, and the leadership with it. Stop the work first. Raises `ReleaseError` like `Guard.release`."""
        self._native.resign().run()

    def __enter__(self) -> Candidacy:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.resign()
        except Exception:
            if error is None:
                raise


class Candidate:
    """A candidate for the leadership of a name, which is the ordinary lock of that name."""

    __slots__ = ("_client", "_name", "_rest", "_watchdog_lease")

    def __init__(
        self, client: native.Client, name: Name, watchdog_lease: Optional[Seconds], rest: Optional[Seconds]
    ) -> None:
        self._client, self._name = client, name
        self._watchdog_lease, self._rest = watchdog_lease, rest

    def campaign(self) -> Candidacy:
        """Starts to campaign.

        >>> import quorlock
        >>> locks = quorlock.Locks.embedded()
        >>> with locks.leader("scheduler").campaign() as candidacy:
        ...     for event in candidacy:
        ...         if isinstance(event, quorlock.Elected):
        ...             print(event.leadership.is_leading)
        ...             break
        True
        """
        return Candidacy(self._client.campaign(self._name, self._watchdog_lease, self._rest))


class LeaderObserver:
    """The leaders of a name as the nodes show them, one after the other. It is not a candidate itself."""

    __slots__ = ("_native",)

    def __init__(self, native: native.Observer) -> None:
        self._native = native

    def __iter__(self) -> Iterator[LeaderView]:
        return self

    def __next__(self) -> LeaderView:
        view = self._native.next().run()
        if view is None:
            raise StopIteration
        return LeaderView(*view)
