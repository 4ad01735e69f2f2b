"""The protocol's conformance files, by calls of the package: each step that is an operation of a guard or of a client.

A file speaks of single requests, and the package of locks. A step maps if exactly one call of the package asks a node for it. What does
not map: messages that only arrive late or twice, numbers that a client draws itself, what its background tasks send (probes of watched
nodes, places in a queue), claims of other programs that are then entered, and requests that a guard refuses to send.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Optional

from servers import Server

import quorlock

PROTOCOL = Path(__file__).parents[3] / "tests/protocol"
sys.path.insert(0, str(PROTOCOL))
# The runner of the page's client, whose server, clock and comparison are used.
conform: Any = importlib.import_module("conform")

LEASE, NAME, RETENTION = 10_000, "orders/42", 86_400_000
FIELDS = {
    "acquire": {"mode", "name", "owner", "count", "lease", "retention", "continues", "under"},
    "renew": {"mode", "name", "owner", "count", "lease", "token", "retention"},
    "release": {"mode", "name", "owner", "count"},
    "inspect": {"name"},
    "force_release": {"name"},
    "put": {"key", "string", "hash", "list", "zset", "ttl"},
}


class Unmapped(Exception):
    """A step that no call of the package asks for. The message says why."""


class Bench(conform.Bench):  # type: ignore[misc]
    """A server whose requests are sent by the package."""

    def __init__(self, server: Server, only_scripts: bool) -> None:
        super().__init__(server.port)
        # No claim is watched: time passes on the server alone, and every answer is one that was asked for.
        settings: quorlock.Settings = {"watch_claims": False, "member_timeout": 2, "only_scripts": only_scripts}
        self.locks = quorlock.Locks.connect(server.address, **settings)
        self.only_scripts = only_scripts

    def begin(self) -> None:
        for guards in getattr(self, "holds", {}).values():
            for guard in guards:
                guard.leak()
        self.holds: dict[tuple[str, str, str], list[quorlock.Guard]] = {}
        self.owners: dict[str, quorlock.Owner] = {}
        self.tickets: dict[str, str] = {}
        # The owners of the file, by those that the package drew.
        self.drawn: dict[str, str] = {}
        # Of each name, the tokens of the file by those of the package, which begin at the time of the clock.
        self.tokens: dict[str, dict[int, int]] = {}
        self.leases: dict[tuple[str, str, str], int] = {}
        self.put_owners = ""
        self.is_hushed = False
        super().begin()

    def do(self, act: dict[str, Any]) -> Any:
        ((what, fields),) = act.items()
        if what in ("put", "wait"):
            if "redisson_lock_token" in fields.get("key", ""):
                raise Unmapped("a counter of the file, which is far below the clock: that is the floor of every token of the package")
            self.put_owners += str(fields)
            return super().do(act)
        if what == "renew":
            if len(fields) != 1:
                raise Unmapped("several claims in one request")
            (fields,) = fields
        known = FIELDS.get(what)
        if known is None:
            raise Unmapped(f"{what}: the package asks for it by itself")
        if strange := set(fields) - known:
            raise Unmapped(f"{what} with {', '.join(sorted(strange))}: the package draws or chooses it itself")
        if fields.get("retention", RETENTION) != RETENTION:
            raise Unmapped("another retention: a setting of the client")
        answer = getattr(self, f"_{what}")(**{key: value for key, value in fields.items() if key != "retention"})
        return [answer] if what == "renew" else answer

    def _acquire(
        self, owner: str, mode: str = "plain", name: str = NAME, count: int = 1, lease: int = LEASE,
        continues: Optional[str] = None, under: Optional[str] = None,
    ) -> Any:  # fmt: skip
        guards = self.holds.setdefault((owner, mode, name), [])
        if continues is not None:
            return self._adopt(guards, owner, continues, mode, name)
        if guards:
            raise Unmapped("an acquire of what is held: the package enters by a renewal, and sends no message twice")
        if owner in self.put_owners:
            raise Unmapped("a claim that another program made, entered by its owner")
        if mode == "read" and under is None and self.holds.get((owner, "write", name)):
            raise Unmapped("a reader that does not say that it writes, which an owner of the package does")
        self.leases[owner, mode, name] = lease
        source = self.owners.setdefault(under or owner, self.locks.owner())
        make = {"plain": source.lock, "fair": source.fair, "read": source.read, "write": source.write}[mode]
        while len(guards) < count:
            try:
                guard = make(name, lease=lease / 1000).try_acquire()
            except quorlock.AcquireError as error:
                if error.case in ("overlap", "upgrade"):
                    raise Unmapped("an acquire that an owner does not send, because it would wait for itself") from None
                return {"error": error.case, "message": str(error)}
            if guard is None:
                return {"refused": None}
            self._hold(guards, guard, owner, name)
        return {"granted": "anew", "token": self.tokens[name][guards[-1].token]}

    def _adopt(self, guards: list[quorlock.Guard], owner: str, continues: str, mode: str, name: str) -> Any:
        if guards:
            raise Unmapped("an acquire of what is held: the package enters by a renewal, and sends no message twice")
        held = self.holds.get((continues, mode, name))
        if continues not in self.tickets:
            if not held:
                raise Unmapped("a ticket of a claim that no guard holds")
            try:
                self.tickets[continues] = held[-1].hand_over()
            except quorlock.HandOverError:
                raise Unmapped("a hand-over that a guard refuses, because it is shared") from None
            held.clear()
        guard = self.locks.adopt(self.tickets[continues])
        if guard is None:
            return {"refused": None}
        self.leases[owner, mode, name] = LEASE
        self._hold(guards, guard, owner, name)
        return {"granted": "anew", "token": self.tokens[name][guard.token]}

    def _hold(self, guards: list[quorlock.Guard], guard: quorlock.Guard, owner: str, name: str) -> None:
        guards.append(guard)
        self.drawn[guard.owner_id] = owner
        tokens = self.tokens.setdefault(name, {0: 0})
        if guard.token not in tokens:
            assert max(tokens) < guard.token
            tokens[guard.token] = len(tokens)

    def _held(self, owner: str, mode: str, name: str) -> list[quorlock.Guard]:
        guards = self.holds.get((owner, mode, name))
        if not guards:
            raise Unmapped("a request about a claim that no guard holds, which is not sent")
        return guards

    def _renew(
        self, owner: str, token: int, mode: str = "plain", name: str = NAME, count: int = 1, lease: int = LEASE
    ) -> Any:
        guards = self._held(owner, mode, name)
        if token != self.tokens[name][guards[-1].token]:
            raise Unmapped("a token that is not the hold's")
        if lease < self.leases[owner, mode, name]:
            raise Unmapped("a renewal with a shorter lease, which no guard sends")
        try:
            if count == len(guards) + 1:
                self._hold(guards, guards[-1].reenter(), owner, name)
            elif count == len(guards):
                guards[-1].extend(lease / 1000)
            else:
                raise Unmapped("a count that is not the next one: a message that arrives late or twice")
        except quorlock.LostError:
            return "not yours"
        return {"extended": None}

    def _release(self, owner: str, mode: str = "plain", name: str = NAME, count: int = 0) -> Any:
        guards = self._held(owner, mode, name)
        how = "kept"
        while count < len(guards):
            how = "kept" if 1 < len(guards) else "freed"
            try:
                guards.pop().release()
            except quorlock.ReleaseError as error:
                # A release without a script wakes waiters whatever it finds, which costs them one more try.
                if error.case != "not_held":
                    return {"error": error.case, "message": str(error)}
                self.is_hushed = not self.only_scripts
                return "not yours"
        return how

    def _inspect(self, name: str = NAME) -> Any:
        seen = self.locks.inspect(name)
        return {"state": seen.state, "owner": seen.owner and self.drawn.get(seen.owner, seen.owner), "text": seen.text}

    def _force_release(self, name: str = NAME) -> Any:
        try:
            return "freed" if self.locks.force_release(name) else "was free"
        except quorlock.ReleaseError as error:
            return {"error": error.case, "message": str(error)}

    def published(self) -> Any:
        is_hushed, self.is_hushed = self.is_hushed, False
        if is_hushed:
            super().published()
            return []
        return sorted([self._of_file(text) for text in message] for message in super().published())

    def keys(self) -> Any:
        found = self._of_file(super().keys())
        for name, tokens in self.tokens.items():
            counter = found.get("redisson_lock_token:" + (name if "{" in name else f"{{{name}}}"))
            if counter is not None:
                counter["string"] = str(tokens[int(counter["string"])])
        return found

    def _of_file(self, value: Any) -> Any:
        """The owners of the file in place of those that the package drew."""
        if isinstance(value, dict):
            return {self._of_file(key): self._of_file(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._of_file(one) for one in value]
        for drawn, owner in getattr(self, "drawn", {}).items():
            value = value.replace(drawn, owner) if isinstance(value, str) else value
        return value

    def same(self, expected: Any, said: Any, field: Optional[str] = None) -> bool:
        """Also compares answers of requests with what the package says about them."""
        if field is None and isinstance(expected, list) and len(expected) == 1 and isinstance(said, list) and len(said) == 1:
            return self.same(expected[0], said[0])
        if not isinstance(expected, dict) or field is not None or not isinstance(said, dict):
            if expected == "left" and said == "freed":
                return True  # A guard does not tell whether others hold the name beside it.
            return bool(super().same(expected, said, field))
        if "refused" in expected or "queued" in expected:
            return said == {"refused": None}
        if "extended" in expected:
            return said == {"extended": None}
        if "other mode" in expected:
            return bool(said.get("error") == "other_mode" and str(expected["other mode"]) in str(said["message"]))
        if "error" in expected:
            return said.get("error") in ("refused", "unconfirmed", "not_held")
        if "found" in expected:
            return self._same_inspection(expected, said)
        return bool(super().same(expected, said, field))

    def _same_inspection(self, expected: dict[str, Any], said: dict[str, Any]) -> bool:
        owner = expected.get("owner") or expected.get("writer")
        readers = expected.get("readers", 0)
        states = {"plain": "held", "no lock": "obstructed", "nothing": "queued" if expected.get("waiting") else "free"}
        state = states.get(expected["found"]) or ("held" if owner else "read" if readers else "free")
        return bool(said["state"] == state and said["owner"] == owner)


def read() -> "list[tuple[str, dict[str, Any]]]":
    """All sequences, with the files that they are in."""
    files = sorted(conform.FILES.glob("*.json"))
    return [(path.name, sequence) for path in files for sequence in conform.read(path)]


def run(bench: Bench, sequence: dict[str, Any]) -> Optional[str]:
    """Runs a sequence. Returns the first difference, or ``None``."""
    trouble: Optional[str] = "the machine is too slow"
    for _ in range(20):
        trouble = bench.run(sequence)
        if bench.passed() < conform.FASTER_THAN * 1000:
            return trouble
    return "the machine is too slow"
