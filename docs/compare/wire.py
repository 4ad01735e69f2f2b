#!/usr/bin/env python3
"""Prints what a lock of Redisson and one of Quorlock ask of a server: the section "A lock's life on the wire" of
docs/src/redisson.md.

    docs/compare/wire.py [QUORLOCK]

QUORLOCK is a built program (default: target/debug/quorlock). The script needs redis-server, redis-cli, a JVM, and
Redisson as tests/interop/run.sh builds it. On a server of its own it runs MONITOR while A acquires a lock, B waits for
it, A renews and releases it, and B gets it. It prints the calls of each step side by side, how many there are, and in
which order five waiters get the lock. The commands that a script executes are indented below its call.
"""
import contextlib, itertools, os, re, selectors, socket, subprocess, sys, tempfile, time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
VERSION = open(os.path.join(ROOT, "tests/interop/redisson/versions")).read().split()[-1]
BUILT = os.path.join(ROOT, "tests/interop/redisson/target", VERSION)
NAME, LEASE, STEPS = "orders/42", 3000, ["A acquires", "B waits", "A renews", "A releases, and B gets the lock"]
QUORLOCK = os.path.realpath(sys.argv[1] if 1 < len(sys.argv) else os.path.join(ROOT, "target/debug/quorlock"))

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = str(free.getsockname()[1])
ADDRESS = f"redis://127.0.0.1:{PORT}"


def cli(*words):
    return subprocess.run(["redis-cli", "-p", PORT, *words], capture_output=True, text=True).stdout


class Ours:
    """`quorlock run` with a command that ends when its input does."""

    def __init__(self, kind):
        self.words = [QUORLOCK, "run", "--nodes", ADDRESS, "--lease", f"{LEASE}ms"] + ["--fair"] * (kind == "fair")

    def begin(self, name):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([*self.words, name, "--", "sh", "-c", "echo got; cat"], stdin=pipe, stdout=pipe, text=True)

    def output(self):
        return self.process.stdout

    def end(self):
        self.process.stdin.close()
        self.process.wait()



class Theirs:
    """A JVM with a client of Redisson."""

    def __init__(self, kind):
        self.mode, pipe, libraries = {"plain": "reentrant"}.get(kind, kind), subprocess.PIPE, open(f"{BUILT}/classpath").read().strip()
        words = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{BUILT}/classes:{libraries}", "Driver", str(LEASE)]
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def order(self, verb, name):
        self.process.stdin.write(f"1 thread {verb} {self.mode} {name} {ADDRESS} 0\n")
        self.process.stdin.flush()

    def begin(self, name):
        self.name = name
        self.order("acquire", name)

    def output(self):
        return self.process.stdout

    def end(self):
        self.order("release", self.name)
        self.output().readline()


def wait_for(client):
    """Waits until a client has the lock. Redisson's log is on the same stream."""
    while not re.match(r"got$|1 (ok|failed)", line := client.output().readline()):
        assert line, "a client ended"


def acquire(client, name=NAME):
    client.begin(name)
    wait_for(client)


def warm(clients):
    """Servers and clients load their scripts, also that of a renewal. Then the server is emptied."""
    for client in clients:
        acquire(client, "warm")
        time.sleep(LEASE / 2000)
        client.end()
    cli("flushall")


@contextlib.contextmanager
def monitored(lines):
    """Adds what the server executes in the meantime to a list."""
    with tempfile.TemporaryFile("w+") as log:
        monitor = subprocess.Popen(["redis-cli", "-p", PORT, "monitor"], stdout=log)
        time.sleep(0.3)
        yield
        time.sleep(0.3)
        monitor.kill()
        monitor.wait()
        log.seek(0)
        lines += [line for line in log if line[0].isdigit()]


def words_of(line, owners):
    """Returns the words of a line of MONITOR, with short names."""
    line = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", lambda m: owners.setdefault(m[0], "AB"[len(owners) % 2]), line)
    line = re.sub(r"(redisson|quorlock)_(?:lock_|unlock_)?_?(\w+):\{%s\}" % NAME, r"\2", line).replace(NAME, "claim")
    line = re.sub(r"latch:\w+", "latch", re.sub(r"\b\d{13}\b", "MS", line))
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    if words[0] == "EVALSHA":
        words = [words[0], words[1][:8], *words[3:]]
    return " ".join(word or "''" for word in words)


def steps(make, kind):
    """Returns the calls of each step: who sent it, and its lines."""
    a, b, lines = make(kind), make(kind), []
    warm([a, b])
    with monitored(lines):
        began = time.monotonic()

        def step(at):
            time.sleep(max(0, began + at - time.monotonic()))
            cli("echo", "step")

        step(0)
        acquire(a)
        step(0.4)
        b.begin(NAME)
        step(0.8)  # The renewal is due a third of the lease after the acquire.
        step(1.4)
        a.end()
        wait_for(b)
        step(1.8)
    for client in a, b:
        client.process.kill()
    owners, found = {}, []
    for line in lines:
        who = re.search(r"\[0 (\S+)\]", line)[1]
        if '"echo" "step"' in line:
            found.append([])
        elif who == "lua":
            if found and found[-1]:
                found[-1][-1][1].append("  " + words_of(line, owners))
        elif found and not re.search(r'"(INFO|SCRIPT|EVAL|CLIENT|PING|COMMAND)"', line):
            found[-1].append((who, [words_of(line, owners)]))
    # What only the command does before it waits: a try without waiting, and an inspection.
    subscribed = next(n for n, (_, call) in enumerate(found[1]) if call[0].startswith("SUBSCRIBE"))
    found[1] = found[1][subscribed - 1:]
    return found[:4]


def lines_of(calls):
    return [line for _, call in calls for line in call]


def count(calls):
    calls = [call for _, call in calls if not re.match("SUB|UNSUB", call[0])]
    return f"{len(calls)}, {sum(len(call) - 1 for call in calls)}"


def order(clients):
    """Returns in which order five waiters get the lock, and the calls between two releases."""
    lines, served, waiters = [], [], selectors.DefaultSelector()
    with monitored(lines):
        acquire(clients[0])
        for number, client in enumerate(clients[1:], 1):
            client.begin(NAME)
            time.sleep(0.3)
            waiters.register(client.output(), selectors.EVENT_READ, number)
        clients[0].end()
        while len(served) < 5:
            number = waiters.select()[0][0].data
            client = clients[number]
            wait_for(client)
            waiters.unregister(client.output())
            time.sleep(0.2)
            client.end()
            served.append(number)
    ends = [n for n, line in enumerate(lines) if re.search(r'(?i)"del" "%s"$' % NAME, line.strip())]
    lines = [line for line in lines[ends[0]:ends[1]] if not re.search('"(UN)?SUBSCRIBE"', line)]
    scripts = sum("[0 lua]" in line for line in lines)
    return " ".join(map(str, served)), f"{len(lines) - scripts}, {scripts}"


def orders(make, kind):
    clients = [make(kind) for _ in range(6)]
    warm(clients)
    found = [order(clients) for _ in range(3)]
    for client in clients:
        client.process.kill()
    return found


for needed in QUORLOCK, BUILT:
    if not os.path.exists(needed):
        sys.exit(f"{needed} is missing: see the head of this script")
with tempfile.TemporaryDirectory() as folder:
    server = subprocess.Popen(["redis-server", "--port", PORT, "--bind", "127.0.0.1", "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)
    try:
        while "PONG" not in cli("ping"):
            time.sleep(0.05)
        runs = {(make, kind): steps(make, kind) for kind in ("plain", "fair") for make in (Theirs, Ours)}
        for number, title in enumerate(STEPS):
            print(f"\n{title}:\n")
            left, right = (lines_of(runs[make, "plain"][number]) for make in (Theirs, Ours))
            for pair in itertools.zip_longest(left, right, fillvalue=""):
                print("%-64s %s" % pair)
        print("\n| calls, commands in scripts | plain: Redisson | Quorlock | fair: Redisson | Quorlock |\n|---|---|---|---|---|")
        for number, title in enumerate(STEPS):
            print("|", title, "|", " | ".join(count(run[number]) for run in runs.values()), "|")
        results = {key: orders(*key) for key in runs}
        print("| one of five waiters gets the lock |", " | ".join(result[-1][1] for result in results.values()), "|")
        print("| order of the five waiters |", " | ".join("; ".join(served for served, _ in result) for result in results.values()), "|")
    finally:
        server.terminate()
        server.wait()
