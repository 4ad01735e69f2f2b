"""Adds to a counter that only a lock protects: beside.py work STORE ROUNDS PORT..., or beside.py check STORE ROUNDS

STORE is the port of the server with the counter, and each PORT is the port of a server of the lock. Another client does the same
at the same time. Exits with an error if both are inside at once, or if a token is not larger than the one before.
"""

import sys
import time

from client import Client
from resp import Connection


def work(store, rounds, ports):
    client = Client(ports, fresh=True)
    store.ask("INCR", "here")
    while int(store.ask("GET", "here")) < 2:
        time.sleep(0.01)
    for turn in range(rounds):
        hold = client.acquire("shared", timeout=60.0)
        if store.ask("SET", "inside", "python", "NX") is None:
            sys.exit(f"{store.ask('GET', 'inside')} is inside, too")
        last = int(store.ask("GET", "token") or 0)
        if hold.token <= last:
            sys.exit(f"the token {hold.token} comes after {last}")
        value = int(store.ask("GET", "counter") or 0)
        if turn % 5 == 0:
            hold.renew()
        store.ask("SET", "token", hold.token)
        store.ask("SET", "counter", value + 1)
        store.ask("RPUSH", "turns", "python")
        store.ask("DEL", "inside")
        hold.release()


def check(store, rounds):
    """Checks that both clients have added in all of their rounds, and that they took turns."""
    counter, turns = int(store.ask("GET", "counter")), store.ask("LRANGE", "turns", 0, -1)
    changes = sum(before != after for before, after in zip(turns, turns[1:]))
    print(f"the counter is {counter}, with {changes} changes from one client to the other")
    if counter != 2 * rounds or changes < rounds // 10:
        sys.exit(f"it should be {2 * rounds}, with {rounds // 10} changes at least")


if __name__ == "__main__":
    what, store, rounds, *ports = sys.argv[1:]
    store, rounds = Connection(int(store)), int(rounds)
    work(store, rounds, [int(port) for port in ports]) if what == "work" else check(store, rounds)
