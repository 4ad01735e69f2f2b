"""The requests of docs/src/protocol.md to one node. The scripts are in other modules of this folder.

Requests of the same moment are sent one after another.
"""

import fair
import operators
import plain
import read_write
from marker import CHECK, PROBE
from resp import ServerError
from shared import CONTINUE, COUNTER, MARKER, MOST, channel, key


def queue(name):
    return [key(prefix, name) for prefix in ("redisson_lock_queue", "redisson_lock_timeout", "quorlock_lock_alive")]


def leases(name):
    """Returns the prefix of the keys of readers' leases. It is followed by `owner:rwlock_timeout:n`."""
    return f"{name}:" if "{" in name else f"{{{name}}}:"


def writer(owner):
    return f"{owner}:write"


def shared_channel(name):
    return key("redisson_rwlock", name)


class Node:
    """One server. Each request is one script, and so one atomic step (N1)."""

    def __init__(self, connection):
        self.connection = connection

    def _run(self, script, keys, args):
        try:
            return self.connection.ask("EVAL", script, len(keys), *keys, *args)
        except ServerError as error:
            for word, said in (("WRONGTYPE", "wrong type"), ("LONGESTLEASE", "longest lease")):
                if word in str(error):
                    return {"error": said}
            raise

    def acquire(self, owner, name="orders/42", mode="plain", count=1, lease=10000, floor=1, slack=MOST, carry=None,
                retention=86400000, margin=None, number=None, replaces=None, after=None, continues=None, check=None, place=None, under=None):
        token = [floor, slack, "" if carry is None else carry]
        keys = [name, key("redisson_lock_token", name)]
        if mode == "plain":
            version = "" if margin is None else f"{number} {lease}"
            script, keys = plain.ACQUIRE, keys + [key("redisson_lock_queue", name)]
            args = [owner, count, lease + (margin or 0), retention, *token, version, replaces or "", "" if after is None else after]
        elif mode == "fair":
            script, keys = fair.ACQUIRE, keys + queue(name)
            args = [owner, count, lease, retention, *token, place or 0, channel(name)]
        elif mode == "read":
            script, args = read_write.ACQUIRE_READ, [owner, count, lease, leases(name), writer(under or "")]
        else:
            script, args = read_write.ACQUIRE_WRITE, [writer(owner), count, lease, retention, *token, leases(name)]
        if continues is not None:
            field = writer(continues) if mode == "write" else continues
            script, args = COUNTER + CONTINUE % script, [field, *token, retention, *args]
        if check is None:
            return self._granted(self._run(script, keys, args))
        said = self._run(CHECK % script, keys + [MARKER], args + self._check(lease=lease, **check))
        return said if isinstance(said, dict) else {**self._granted(said[0]), "marker": self._marker(said)}

    @staticmethod
    def _granted(said):
        if isinstance(said, dict):
            return said
        if said[0] == "refused":
            return {"refused": said[1], "version": said[2]} if said[2:] and said[2] else {"refused": said[1]}
        if said[0] in ("other mode", "queued"):
            return {said[0]: said[1]}
        return {"granted": said[0], "token": int(said[1])}

    def renew(self, owner, token, name="orders/42", mode="plain", count=1, lease=10000, retention=86400000, margin=None, number=None):
        keys = [name, key("redisson_lock_token", name)]
        if mode == "read":
            said = self._run(read_write.RENEW_READ, keys, [owner, count, lease, token, leases(name)])
        elif mode == "write":
            said = self._run(read_write.RENEW_WRITE, keys, [writer(owner), count, lease, retention, token])
        else:  # F8
            version = "" if margin is None else f"{number} {lease}"
            said = self._run(plain.RENEW, keys, [owner, count, lease + (margin or 0), retention, token, version])
        return {"extended": int(said)} if said else "not yours"

    def release(self, owner, name="orders/42", mode="plain", count=0):
        if mode == "read":
            return self._run(read_write.RELEASE_READ, [name], [owner, count, leases(name), shared_channel(name)])
        if mode == "write":
            return self._run(read_write.RELEASE_WRITE, [name], [writer(owner), count, leases(name), shared_channel(name)])
        if mode == "fair" and count == 0:
            return self._run(fair.RELEASE, [name, *queue(name)], [owner, channel(name)])
        return self._run(plain.RELEASE, [name], [owner, count, channel(name)])

    def inspect(self, name="orders/42"):
        """O1: returns what is stored under a name."""
        keys = [name, key("redisson_lock_token", name), key("redisson_lock_queue", name)]
        found, waiting, token, left, owner, count, readers = self._run(operators.INSPECT, keys, [leases(name)])
        said = {"found": found, "waiting": waiting}
        if token is not None:
            said["token"] = int(token)
        if found in ("plain", "read-write"):
            said["ttl"] = left
        if found == "read-write":
            said["readers"] = readers
        if owner:
            said.update({"owner" if found == "plain" else "writer": owner, "count": int(count)})
        return said

    def force_release(self, name="orders/42"):
        args = [channel(name), shared_channel(name), leases(name)]
        return self._run(operators.FORCE_RELEASE, [name, *queue(name)], args)

    def probe(self, **check):
        said = self._run(PROBE, [MARKER], self._check(lease=0, **check))
        return said if isinstance(said, dict) else {"marker": self._marker(said)}

    @staticmethod
    def _check(lease, act="look", nonce=0, longest=60000, figures=None, trusted=None, trusted_figures=None, keep=False,
               known=None):
        text = lambda value: "" if value is None else value
        trusts = "" if trusted is None else f"{trusted} {trusted_figures or longest}"
        return [act, nonce, figures or longest, trusts, int(keep), text(known), lease]

    @staticmethod
    def _marker(said):
        if said[1] not in ("ripe", "unripe"):
            return said[1]
        return {said[1]: int(said[2]), "figures": said[4]}
