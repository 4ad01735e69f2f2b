"""Interrupts, the interpreter's exit, forks, and Python code that computes."""

from __future__ import annotations

import signal
import subprocess
import time
from typing import Callable

import pytest
from conftest import CONNECT, Program
from servers import Server

import quorlock


def line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def ended(running: subprocess.Popen[str], code: int = 0) -> str:
    """Waits for the end of a program. Returns what it wrote to stderr."""
    _, errors = running.communicate(timeout=30)
    assert running.returncode == code, errors
    assert "panicked" not in errors and "Fatal" not in errors, errors
    return errors


def test_an_interrupt_ends_a_wait(program: Program, server: Server, locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name):
        running = program(
            CONNECT
            + """
try:
    print("waits")
    locks.lock(name).acquire()
except KeyboardInterrupt:
    began = time.monotonic()
    print("interrupted", locks.held)
""",
            server.address,
            name,
        )
        assert line(running) == "waits"
        time.sleep(0.2)
        sent = time.monotonic()
        running.send_signal(signal.SIGINT)
        assert line(running) == "interrupted 0"
        assert time.monotonic() - sent < 5
        ended(running)
    assert name not in server.keys()


def test_an_interrupt_in_a_block_releases(program: Program, server: Server, name: str) -> None:
    running = program(
        CONNECT
        + """
try:
    with locks.lock(name):
        print("works")
        time.sleep(60)
except KeyboardInterrupt:
    print(locks.held)
""",
        server.address,
        name,
    )
    assert line(running) == "works"
    assert name in server.keys()
    running.send_signal(signal.SIGINT)
    assert line(running) == "0"
    assert name not in server.keys()
    ended(running)


def test_interrupts_at_any_moment_leave_nothing_held(program: Program, server: Server, name: str) -> None:
    """Signals arrive at random moments of a thousand blocks. Tracebacks are kept, as a debugger does."""
    running = program(
        CONNECT
        + """
import faulthandler, random
lock = locks.lock(name)
random.seed(1)
kept, count = [], 0
deadline = time.monotonic() + 4
def interrupt():
    while count < 300 and time.monotonic() < deadline:
        time.sleep(random.uniform(0, 0.004))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
class Interrupt(BaseException):
    pass
is_armed = False
def handle(*_):
    global is_armed
    if is_armed:
        is_armed = False
        raise Interrupt
signal.signal(signal.SIGUSR1, handle)
thread = threading.Thread(target=interrupt)
thread.start()
while count < 300 and time.monotonic() < deadline:
    try:
        is_armed = True
        while True:
            with lock:
                pass
    except Interrupt as error:
        kept.append(error)
        count += 1
thread.join()
with locks.lock(name, wait=20):
    pass
while locks.held:
    time.sleep(0.01)
print(20 < count)
""",
        server.address,
        name,
    )
    assert line(running) == "True", running.communicate(timeout=30)[1]
    ended(running)


DAEMON = """
def wait():
    try:
        locks.lock(name).acquire()
    except quorlock.ClosedError:
        pass
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", DAEMON], ids=["end", "exit", "daemon"])
def test_an_interpreter_that_exits_leaves_nothing_locked(program: Program, server: Server, name: str, end: str) -> None:
    running = program(CONNECT + "guard = locks.lock(name).acquire()\nprint('held')\n" + end, server.address, name)
    assert line(running) == "held"
    assert ended(running) == ""
    assert name not in server.keys()


def test_an_interpreter_exits_although_its_server_does_not_answer(
    program: Program, new_server: Callable[..., Server], name: str
) -> None:
    server = new_server()
    running = program(CONNECT + "guard = locks.lock(name).acquire()\nprint('held')\nsys.stdin.readline()", server.address, name)
    assert line(running) == "held"
    server.stop()
    began = time.monotonic()
    running.communicate("exit\n", timeout=30)
    assert running.returncode == 0
    assert time.monotonic() - began < 15
    server.resume()


def test_an_exception_that_ends_the_program_releases(program: Program, server: Server, name: str) -> None:
    running = program(CONNECT + "guard = locks.lock(name).acquire()\nraise ValueError", server.address, name)
    assert "ValueError" in ended(running, 1)
    assert name not in server.keys()


def test_a_cancelled_event_loop_leaves_nothing_locked(program: Program, server: Server, name: str) -> None:
    running = program(
        """
import asyncio, sys
from quorlock.asyncio import Locks
async def main():
    locks = await Locks.connect(sys.argv[1])
    async with locks.lock(sys.argv[2]):
        asyncio.ensure_future(locks.lock(sys.argv[2]).acquire())
        print("works")
        await asyncio.sleep(60)
asyncio.run(main())
""",
        server.address,
        name,
    )
    assert line(running) == "works"
    running.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in ended(running, -signal.SIGINT)
    assert name not in server.keys()


def test_a_child_neither_uses_nor_releases_what_its_parent_holds(program: Program, server: Server, name: str) -> None:
    running = program(
        CONNECT
        + """
lock = locks.lock(name, watchdog_lease=1)
def kinds(*calls):
    for call in calls:
        try:
            call()
        except quorlock.ForkedError as error:
            yield error.kind.value
        else:
            yield "none"
with lock as guard:
    lost = guard.lost
    child = os.fork()
    if child == 0:
        try:
            calls = [guard.check, guard.release, lambda: guard.is_held, lambda: guard.extend(9), lock.acquire, lock.try_acquire]
            calls += [lambda: locks.lock("x"), locks.close, lambda: locks.held, lambda: guard.lost, lost.wait]
            calls += [guard.hand_over, lambda: locks.adopt("ticket")]
            told = list(kinds(*calls))
            assert told == ["forked"] * len(calls), told
            own = quorlock.Locks.connect(sys.argv[1])
            assert own.lock(name).try_acquire() is None
            with own.lock(name + "/child") as held:
                print(held.owner_id)
            del guard, lock
            print("child", own.held)
        finally:
            # The end of an interpreter, without the blocks of the parent.
            import atexit
            atexit._run_exitfuncs()
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    time.sleep(1.5)  # longer than the lease
    guard.check()
    print("parent", guard.is_held, guard.owner_id)
""",
        server.address,
        name,
    )
    child_id = line(running)
    assert line(running) == "child 0"
    parent, held, parent_id = line(running).split()
    assert (parent, held) == ("parent", "True")
    assert child_id.split(":")[0] != parent_id.split(":")[0], "a child must not have the identity of its parent"
    assert ended(running) == ""
    assert not {name, name + "/child"} & server.keys()


def test_a_child_that_leaves_the_block_of_its_parent_does_not_release(
    program: Program, server: Server, name: str
) -> None:
    running = program(
        CONNECT
        + """
with locks.lock(name) as guard:
    child = os.fork()
    if child == 0:
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert locks.lock(name).try_acquire() is None
    guard.extend(40)
    print("held")
""",
        server.address,
        name,
    )
    assert line(running) == "held", running.communicate(timeout=30)[1]
    ended(running)


def test_children_of_multiprocessing_connect_anew(program: Program, server: Server, name: str) -> None:
    running = program(
        CONNECT
        + """
import multiprocessing
def work(number):
    with quorlock.Locks.connect(sys.argv[1]) as own, own.lock(name) as guard:
        return guard.owner_id.split(":")[0], guard.token
with locks.lock(name):
    pass
with multiprocessing.get_context("fork").Pool(3) as pool:
    results = pool.map(work, range(12))
ids, tokens = zip(*results)
print(len(set(ids)), len(set(tokens)))
""",
        server.address,
        name,
    )
    assert line(running) == "12 12", running.communicate(timeout=30)[1]
    ended(running)


@pytest.mark.computes
def test_python_that_computes_does_not_lose_a_lease(computing: list[subprocess.Popen[str]]) -> None:
    """Loops of 10 s in pure Python and in C, with leases of 3 s. They have run beside the tests before this one."""
    for running in computing:
        assert line(running) == "True True", running.communicate(timeout=30)[1]
        ended(running)


def test_a_wait_lets_other_threads_run(locks: quorlock.Locks, name: str) -> None:
    import threading

    with locks.lock(name) as guard:
        waiter = threading.Thread(target=lambda: locks.lock(name, wait=20).acquire().release())
        waiter.start()
        count, end = 0, time.monotonic() + 0.3
        while time.monotonic() < end:
            count += 1
        assert waiter.is_alive()
        assert guard.is_held
    waiter.join()
    # A waiter that held the interpreter would have let the loop run at no time.
    assert 1000 < count


def test_records_reach_the_logger(program: Program, server: Server, name: str) -> None:
    running = program(
        """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
"""
        + CONNECT
        + "with locks.lock(name):\n    pass\n",
        server.address,
        name,
    )
    output, _ = running.communicate(timeout=30)
    assert any(text.startswith("quorlock DEBUG acquired") and name in text for text in output.splitlines()), output


def test_warnings_are_written_by_default(program: Program, server: Server) -> None:
    running = program("import quorlock, sys\nquorlock.Locks.connect(sys.argv[1])", server.address)
    errors = ended(running)
    assert errors.startswith("a server is usable and doubtful")
    assert errors.count("\n") == 1
