"""Runs the conformance files against node.py on a separate server: conform.py PORT"""

import json
import pathlib
import sys
import time

from node import Node
from resp import Connection, ServerError
from shared import MARKER

FILES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "protocol"

# Ages all keys, which stands for time that passes.
AGE = """
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then redis.call('PEXPIRE', key, string.format('%.0f', left - ARGV[1])) end
  if redis.call('TYPE', key).ok == 'zset' then
    for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -ARGV[1], member) end
  end
end"""

# The bound on the real time of a sequence, which shows in TTLs. A sequence that takes longer is started again.
FASTER_THAN = 0.9


def without_equal_figures(said):
    """Returns the reply as files have it: they leave out figures that are all equal."""
    marker = said.get("marker") if isinstance(said, dict) else None
    if not isinstance(marker, dict) or ">" in marker["figures"]:
        return said
    return {**said, "marker": {word: value for word, value in marker.items() if word != "figures"}}


class Bench:
    """A server without other clients."""

    def __init__(self, port):
        self.look, self.ear, self.node = Connection(port), Connection(port), Node(Connection(port))
        self.ear.ask("PSUBSCRIBE", "*")
        info = self.look.ask("INFO", "replication")
        self.process = info.split("master_replid:")[1][:13]

    def begin(self):
        self.look.ask("FLUSHALL")
        self.published()
        self.start, self.clock, self.now = time.monotonic(), self.time(), 0

    def time(self):
        seconds, micros = self.look.ask("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    def passed(self):
        return int((time.monotonic() - self.start) * 1000) + 1

    def published(self):
        self.look.ask("PUBLISH", "last", "")
        messages = []
        while (message := self.ear.next())[2] != "last":
            messages.append(message[2:])
        return sorted(messages)

    def do(self, act):
        (what, fields), = act.items()
        if what in ("acquire", "release", "inspect", "force_release"):
            if "floor" in fields and isinstance(fields["floor"], dict):
                fields = {**fields, "floor": self.clock + fields["floor"]["clock"]}
            return getattr(self.node, what)(**fields)
        if what == "renew":
            return [self.node.renew(**claim) for claim in fields]
        if what in ("probe", "check"):
            return self.node.probe(**fields)
        if what == "together":
            return [self.do(one) for one in fields]
        if what == "put":
            self.put(**fields)
        elif what == "restart":
            self.restart()
        elif what != "wait":
            raise ValueError(f"the page has no request {what}")
        return None

    def put(self, key, string=None, hash=None, list=None, zset=None, ttl=None):
        self.look.ask("DEL", key)
        if string is not None:
            self.look.ask("SET", key, string)
        for field, value in (hash or {}).items():
            self.look.ask("HSET", key, field, value)
        for element in list or []:
            self.look.ask("RPUSH", key, element)
        for member, left in (zset or {}).items():
            self.look.ask("ZADD", key, self.time() + left, member)
        if ttl is not None:
            self.look.ask("PEXPIRE", key, ttl)

    def restart(self):
        marker, left = self.look.ask("GET", MARKER), self.look.ask("PTTL", MARKER)
        self.look.ask("SET", MARKER, "0" * 13 + marker[13:], "PX", left)

    def keys(self):
        found = {}
        for key in self.look.ask("KEYS", "*"):
            kind, left = self.look.ask("TYPE", key), self.look.ask("PTTL", key)
            if kind == "hash":
                flat = self.look.ask("HGETALL", key)
                value = dict(zip(flat[::2], flat[1::2]))
            elif kind == "list":
                value = self.look.ask("LRANGE", key, 0, -1)
            elif kind == "zset":
                flat, now = self.look.ask("ZRANGE", key, 0, -1, "WITHSCORES"), self.time()
                value = {member: int(float(score)) - now for member, score in zip(flat[::2], flat[1::2])}
            else:
                value = self.look.ask("GET", key)
                if key == MARKER:
                    value = ("$PROCESS" if value[:13] == self.process else "$OTHER") + value[13:]
            found[key] = {kind: value, "ttl": left} if left >= 0 else {kind: value}
        return found

    def same(self, expected, said, field=None):
        """Returns whether both are the same, apart from the time that has passed."""
        if isinstance(expected, dict) and set(expected) == {"clock"}:
            least = self.clock + expected["clock"]
            return isinstance(said, int) and least <= said <= least + self.passed()
        if isinstance(expected, dict):
            inner = lambda name: "ttl" if field == "zset" else name
            return isinstance(said, dict) and expected.keys() == said.keys() and all(
                self.same(value, said[name], inner(name)) for name, value in expected.items())
        if isinstance(expected, list):
            return isinstance(said, list) and len(expected) == len(said) and all(map(self.same, expected, said))
        if field in ("ttl", "refused", "queued") and isinstance(said, int) and expected >= 0:
            return expected - self.passed() <= said <= expected
        return expected == said

    def run(self, sequence):
        """Runs a sequence. Returns the first difference, or None."""
        self.begin()
        for at, step in enumerate(sequence["steps"]):
            if self.now < step["at"]:
                self.look.ask("EVAL", AGE, 0, step["at"] - self.now)
                self.now = step["at"]
            said, expected = without_equal_figures(self.do(step["do"])), step.get("reply")
            if not self.same(expected, said):
                return f"step {at}: the reply is {said}, not {expected}"
            said, expected = self.published(), sorted(step.get("published", []))
            if said != expected:
                return f"step {at}: {said} was published, not {expected}"
            if "keys" in step:
                said = self.keys()
                if not self.same(step["keys"], said):
                    return f"step {at}: the keys are {said}, not {step['keys']}"
        return None


def read(path):
    text = path.read_text(encoding="utf-8")
    for short, owner in json.loads(text)["owners"].items():
        text = text.replace("$" + short, owner)
    return json.loads(text)["sequences"]


def main():
    bench = Bench(int(sys.argv[1]))
    passed, wrong = 0, []
    for path in sorted(FILES.glob("*.json")):
        for sequence in read(path):
            name = f"{path.name}: {sequence['name']}"
            try:
                for _ in range(20):
                    trouble = bench.run(sequence)
                    if bench.passed() < FASTER_THAN * 1000:
                        break
                else:
                    trouble = "the machine is too slow"
            except (ServerError, ValueError, TypeError, KeyError) as error:
                trouble = repr(error)
            passed += trouble is None
            if trouble:
                wrong.append(f"{name}: {trouble}")
    for trouble in wrong:
        print("WRONG", trouble)
    print(f"{passed} sequences passed, {len(wrong)} did not")
    sys.exit(1 if wrong or not passed else 0)


if __name__ == "__main__":
    main()
