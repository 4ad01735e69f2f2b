"""A lock on one server, and RedLock on several, written from docs/src/protocol.md. The comments cite its rules."""

import concurrent.futures
import itertools
import random
import select
import time
import uuid

from node import Node
from resp import Connection, ServerError
from shared import channel


def clock():
    """C4: returns the time of a clock that never steps, and that counts suspended time if the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def drift(span):
    return span / 100 + 0.002


class Longest:
    """C20: what this client knows about the longest lease, in ms. It never raises it."""

    def __init__(self, longest):
        self.own, self.granted, self.needed, self.watched = longest, 0, 0, longest

    def stated(self):
        granted, needed = (self.granted, self.needed) if self.granted else (self.own, self.own)
        return f"{granted}>{needed}>{self.watched}" if granted < self.watched else str(self.watched)

    def shown(self, marker):
        """Handles a marker of the node's process. Returns how long it was watched."""
        numbers = [int(number) for number in marker["figures"].split(">")]
        granted, needed, watched = numbers if numbers[1:] else 3 * numbers
        self.watched = max(self.watched, watched)
        if "ripe" in marker:
            self.granted, self.needed = max(self.granted, granted), max(self.needed, needed)
        return watched


class Member:
    """One node, and what this client has learned about it."""

    def __init__(self, port, timeout, longest):
        self.port, self.timeout, self.node, self.longest = port, timeout, None, longest
        self.versions = {}        # C18: name -> (claim version, when it was first seen)
        self.unripe = None     # C19: (nonce, when it was first seen)
        self.trusted = None    # the nonce and the figures of the ripe marker
        self.too_short = False # C20: whether the node was watched for less than others need

    def ask(self, what, **fields):
        """Returns the reply, or None if the request may or may not have been executed (C5)."""
        try:
            if self.node is None:
                self.node = Node(Connection(self.port, timeout=self.timeout))
            return getattr(self.node, what)(**fields)
        except (OSError, ServerError):
            self.node, self.versions, self.unripe, self.trusted, self.too_short = None, {}, None, None, False
            return None

    def acquire(self, name, lease, watch, margin, **fields):
        """Returns whether the grant of this node counts, and its reply."""
        if margin is not None:
            fields["margin"] = margin
            version, since = self.versions.get(name, (None, 0))
            if version and since + drifted(version) < clock():
                fields["replaces"] = version
        if watch:
            fields["check"] = self._check(watch)
        reply = self.ask("acquire", name=name, lease=lease, **fields)
        now = clock()
        if not isinstance(reply, dict) or "error" in reply:
            return False, reply
        if reply.get("version") is None:
            self.versions.pop(name, None)
        elif self.versions.get(name, (None,))[0] != reply["version"]:
            self.versions[name] = reply["version"], now
        return ("granted" in reply and self._is_trusted(watch, reply, now)), reply

    def _check(self, watch):
        longest, fresh = self.longest.watched, watch[1]
        check = {"figures": self.longest.stated(), "act": "mark fresh" if fresh else "mark", "nonce": random.getrandbits(53)}
        if self.too_short:
            check["act"] = "mark anew"
        if self.unripe and self.unripe[1] + longest / 1000 + drift(longest / 1000) < clock():
            check.update(act="ripen", nonce=self.unripe[0])
        if self.trusted is not None:
            check["trusted"], check["trusted_figures"] = self.trusted
        return check

    def _is_trusted(self, watch, reply, now):
        """C19: returns whether the node counts for a majority."""
        if not watch:
            return True
        marker = reply["marker"] if isinstance(reply["marker"], dict) else {}
        nonce = marker.get("unripe")
        if nonce is None:
            self.unripe = None
        elif self.unripe is None or self.unripe[0] != nonce:
            self.unripe = nonce, now
        watched = self.longest.shown(marker) if marker else 0
        self.too_short = bool(marker) and watched < self.longest.needed
        self.trusted = (marker["ripe"], marker["figures"]) if "ripe" in marker and self.longest.needed <= watched else None
        return self.trusted is not None or reply["granted"] == "already yours"


def drifted(version):
    """Returns how long a claim version must be unchanged before its claim may be replaced."""
    lease = int(version.rsplit(" ", 1)[1]) / 1000
    return lease + drift(lease)


class Lost(Exception):
    """The lock is no longer held."""


class Client:
    """Locks on one port, or on a majority of several.

    Leases are in seconds. On several nodes, the margin is the longest lease, and nodes are watched (C17, C19). With fresh,
    nodes without a marker count as new.
    """

    def __init__(self, ports, lease=10.0, longest=60.0, fresh=False):
        several = len(ports) > 1
        self.id, self.numbers = uuid.uuid4(), itertools.count(1)
        self.lease, self.margin = lease, int(longest * 1000) if several else None
        self.watch = (int(longest * 1000), fresh) if several else None
        self.slack, self.threshold = int(longest * 250), len(ports) // 2 + 1
        self.longest = Longest(int(longest * 1000))
        self.members = [Member(port, lease / 20, self.longest) for port in ports]
        self.pool = concurrent.futures.ThreadPoolExecutor(len(ports))
        self.orphans = []

    def each(self, work, members=None):
        """Runs the work for all members concurrently, and returns the result of each."""
        members = self.members if members is None else members
        return dict(zip(members, self.pool.map(work, members)))

    def acquire(self, name, timeout):
        """C8: tries, subscribes, tries again, and sleeps."""
        until, pause, ears = clock() + timeout, 0.01, None
        try:
            while clock() < until:
                hold, wait = Hold.attempt(self, name)
                if hold:
                    return hold
                if ears is None:
                    ears = Ears(self.members, name)
                elif wait is not None:
                    ears.wait(min(wait, 5.0, until - clock()))
                else:  # C13: votes were split, or nodes silent
                    pause = min(2 * pause, 1.0)
                    time.sleep(random.uniform(0, pause))
            raise TimeoutError(name)
        finally:
            if ears:
                ears.close()

    def give_back(self, name, owner, members):
        """C5, C7: releases the claims. A release without an answer is repeated until the node answers or the claim is over."""
        replies = self.each(lambda member: member.ask("release", name=name, owner=owner), members)
        over = clock() + self.lease + (self.margin or 0) / 1000
        self.orphans += [(name, owner, member, over) for member, reply in replies.items() if reply is None]
        return list(replies.values())

    def clean_up(self):
        again, self.orphans = self.orphans, []
        for name, owner, member, over in again:
            if clock() < over and member.ask("release", name=name, owner=owner) is None:
                self.orphans.append((name, owner, member, over))


class Ears:
    """Subscriptions to the messages about one name."""

    def __init__(self, members, name):
        self.connections = []
        for member in members:
            try:
                connection = Connection(member.port, timeout=member.timeout)
                connection.ask("SUBSCRIBE", channel(name))
                self.connections.append(connection)
            except OSError:
                pass

    def wait(self, timeout):
        sockets = [connection.socket for connection in self.connections]
        ready, _, _ = select.select(sockets, [], [], max(timeout, 0))
        for connection in [one for one in self.connections if one.socket in ready]:
            try:
                connection.next()
            except OSError:
                self.connections.remove(connection)

    def close(self):
        for connection in self.connections:
            connection.close()


class Hold:
    """A hold of a lock; see attempt()."""

    def __init__(self, client, name):
        self.client, self.name, self.token = client, name, None
        self.owner = f"{client.id}:{next(client.numbers)}"  # C2
        self.requests, self.terms = itertools.count(1), {}

    @classmethod
    def attempt(cls, client, name):
        """Runs one round. Returns a hold, or None and for how long other owners still have the lock (None if unknown)."""
        client.clean_up()
        hold = cls(client, name)
        votes = hold._ask(floor=int(time.time() * 1000), slack=client.slack)  # C10
        granted = {member: reply["token"] for member, (counts, reply) in votes.items() if counts}
        if len(granted) >= client.threshold and hold._agree(granted) and hold.is_held():
            return hold, None
        refused = [reply for _, reply in votes.values() if isinstance(reply, dict) and "refused" in reply]
        # C13: silence is not a refusal. A member that did not answer may have granted the claim.
        client.give_back(name, hold.owner, [m for m, (_, reply) in votes.items() if reply not in refused])
        is_in_the_way = len(refused) > len(votes) - client.threshold
        return None, max(reply["refused"] for reply in refused) / 1000 if is_in_the_way else None

    def _ask(self, members=None, **fields):
        """Requests the claim. A term counts from before its request was sent (C4, C12), because the reply may be late."""
        client, sent = self.client, clock()
        number = {} if client.margin is None else {"number": next(self.requests)}
        ask = lambda member: member.acquire(self.name, int(client.lease * 1000), client.watch, client.margin,
                                            owner=self.owner, **number, **fields)
        needed = client.longest.needed
        votes = client.each(ask, members)
        if 0 < needed < client.longest.needed:  # C20: no vote of this round counts
            votes = {member: (False, reply) for member, (_, reply) in votes.items()}
        for member, (counts, _) in votes.items():
            if counts:
                self.terms[member] = sent + client.lease - drift(client.lease)
        return votes

    def _agree(self, granted):
        """C15: makes a threshold of the members agree on one token."""
        if len(set(granted.values())) == 1:
            self.token = max(granted.values())
            return True
        proposed = max(granted.values())
        for _ in range(3):
            proposed += 1
            votes = self._ask(list(granted), carry=proposed)
            values = [reply["token"] for counts, reply in votes.values() if counts and reply["granted"] == "already yours"]
            if values.count(proposed) >= self.client.threshold:
                self.token = proposed
                return True
            proposed = max(values + [proposed])
        return False

    def valid_until(self):
        """C12: returns the threshold-th largest term."""
        terms = sorted(self.terms.values(), reverse=True)
        return terms[self.client.threshold - 1] if len(terms) >= self.client.threshold else 0.0

    def is_held(self):
        return clock() < self.valid_until()

    def renew(self):
        """C6, C14: renews the hold. Raises Lost if it is no longer held."""
        client, sent, held = self.client, clock(), list(self.terms)
        number = {} if client.margin is None else {"number": next(self.requests), "margin": client.margin}
        replies = client.each(lambda member: member.ask("renew", name=self.name, owner=self.owner, token=self.token,
                                                        lease=int(client.lease * 1000), **number), held)
        for member, reply in replies.items():
            if reply == "not yours":
                del self.terms[member]
            elif reply is not None and self.is_held():
                self.terms[member] = sent + client.lease - drift(client.lease)
        missing = [member for member in client.members if member not in self.terms]
        if missing and self.is_held():
            self._ask(missing, carry=self.token)
        if not self.is_held():
            raise Lost(self.name)

    def release(self):
        """Releases the hold. Raises Lost if it was no longer held."""
        was_held = self.is_held()
        self.client.give_back(self.name, self.owner, self.client.members)
        if not was_held:
            raise Lost(self.name)
