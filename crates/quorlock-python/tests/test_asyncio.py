"""Locks for asyncio, on a real server."""

from __future__ import annotations

import asyncio
import gc
from typing import Any, Awaitable, Callable, Coroutine

import pytest
from servers import Server

import quorlock
from quorlock.asyncio import Elected, Leadership, Locks, TermLost

Test = Callable[[Locks], Coroutine[Any, Any, None]]


async def within(work: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(work, 20)


@pytest.fixture
def run(server: Server) -> Callable[[Test], None]:
    """Runs a test with a client, in an event loop of its own."""

    def run(test: Test) -> None:
        async def main() -> None:
            async with await Locks.connect(server.address) as locks:
                await test(locks)

        asyncio.run(main())

    return run


def test_a_lock_is_held_in_its_block_and_free_afterwards(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        async with locks.lock(name) as guard:
            assert guard.is_held
            assert await locks.lock(name).try_acquire() is None
            with pytest.raises(quorlock.AcquireError):
                await locks.lock(name, wait=0.05).acquire()
        assert not guard.is_held
        assert locks.held == 0

    run(test)


def test_a_hold_passes_to_another_client(run: Callable[[Test], None], server: Server, name: str) -> None:
    async def test(locks: Locks) -> None:
        guard = await locks.lock(name).acquire()
        ticket = guard.hand_over()
        assert await within(guard.lost.wait()) is quorlock.Lost.RELEASED
        async with await Locks.connect(server.address) as worker:
            adopted = await worker.adopt(ticket)
            assert adopted is not None and guard.token < adopted.token
            assert await worker.adopt(ticket) is None
            async with adopted:
                assert (await locks.inspect(name)).owner == adopted.owner_id

    run(test)


def test_tasks_exclude_each_other(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        inside, most = 0, 0
        lock = locks.lock(name)

        async def work() -> None:
            nonlocal inside, most
            async with lock:
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(64)))
        assert most == 1

    run(test)


def test_a_cancelled_acquisition_leaves_no_claim(run: Callable[[Test], None], server: Server, name: str) -> None:
    async def test(locks: Locks) -> None:
        async with locks.lock(name):
            waiter = asyncio.ensure_future(locks.lock(name).acquire())
            await asyncio.sleep(0.05)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
        async with locks.lock(name, wait=20):
            assert locks.held == 1

    run(test)
    assert name not in server.keys()


def test_a_grant_that_arrives_after_a_cancellation_is_released(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        caught: list[BaseException] = []
        for steps in range(200):
            task = asyncio.ensure_future(locks.lock(name).acquire())
            for _ in range(steps % 20):
                await asyncio.sleep(0)
            if steps % 3 == 0:
                await asyncio.sleep(0.0002)
            task.cancel()
            try:
                await (await task).release()
            except asyncio.CancelledError as error:
                # As a debugger does, which keeps the traceback and its frames.
                caught.append(error)
        assert caught
        async with locks.lock(name, wait=20):
            pass
        while locks.held:
            await asyncio.sleep(0.01)

    gc.disable()
    try:
        run(test)
    finally:
        gc.enable()


def test_a_cancelled_task_whose_grant_had_arrived_keeps_nothing(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        lock = locks.lock(name)
        task = asyncio.ensure_future(lock.acquire())
        await asyncio.sleep(0)
        # The grant arrives while the loop is busy. The next turn completes the future, and only then is the task cancelled.
        await asyncio.to_thread(_wait_until_held, locks) if hasattr(asyncio, "to_thread") else None
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await (await task).release()
            raise asyncio.CancelledError
        async with locks.lock(name, wait=20):
            assert caught.value is not None

    run(test)


def _wait_until_held(locks: Locks) -> None:
    while not locks.held:
        pass


def test_work_is_cancelled_when_the_lock_is_lost(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        ended: list[str] = []

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        guard = await locks.lock(name, lease=0.1).acquire()
        with pytest.raises(quorlock.LostError) as caught:
            await within(guard.while_held(work()))
        assert caught.value.how is quorlock.Lost.EXPIRED
        assert ended == ["cancelled"]

        async def quick() -> int:
            return 7

        async def broken() -> None:
            raise ZeroDivisionError

        async with locks.lock(name) as held:
            assert await held.while_held(quick()) == 7
            with pytest.raises(ZeroDivisionError):
                await held.while_held(broken())
            task = asyncio.ensure_future(held.while_held(work()))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert held.is_held
        assert ended == ["cancelled"] * 2

    run(test)


def test_a_signal_is_awaited_and_calls_back(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        told: asyncio.Queue[quorlock.Lost] = asyncio.Queue()
        guard = await locks.lock(name, lease=0.1).acquire()
        task = guard.lost.add_callback(told.put_nowait)
        assert await within(guard.lost.wait()) is quorlock.Lost.EXPIRED
        assert await within(told.get()) is quorlock.Lost.EXPIRED
        await task
        with pytest.raises(quorlock.ReleaseError):
            async with locks.lock(name, lease=0.1) as held:
                await held.lost.wait()

    run(test)


def test_the_rest_of_the_interface(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        async with locks.read(name), locks.read(name):
            assert await locks.write(name).try_acquire() is None
        async with locks.write(name):
            pass
        async with locks.fair(name + "/fair"):
            pass
        async with locks.all([name + "/1", name + "/2"]) as both:
            assert len(both.names) == 2
        async with locks.lock(name + "/1").together_with(locks.lock(name + "/2")) as both:
            assert len(both.names) == 2
        semaphore = locks.semaphore(name + "/permits", 2)
        async with semaphore, semaphore:
            assert await semaphore.try_acquire() is None
        owner = locks.owner()
        async with owner.lock(name + "/owned"), owner.lock(name + "/owned") as inner:
            assert inner.hold_count == 2
            await (await inner.reenter()).release()
            await inner.extend(40)
            assert 30 < inner.validity
        guard = await locks.lock(name + "/forced").acquire()
        assert (await locks.inspect(name + "/forced")).owner == guard.owner_id
        assert await locks.force_release(name + "/forced") == 1
        with pytest.raises(quorlock.ReleaseError):
            await guard.release()
        await locks.ready()

    run(test)


def test_a_candidate_leads_and_steps_down(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        async with locks.leader(name, rest=20).campaign() as candidacy:
            elected = await within(candidacy.__anext__())
            assert isinstance(elected, Elected)
            async for view in locks.observe_leader(name):
                assert view.owner == elected.leadership.owner_id
                break
            elected.leadership.step_down()
            assert isinstance(await within(candidacy.__anext__()), TermLost)

    run(test)


def test_work_runs_while_it_leads(run: Callable[[Test], None], name: str) -> None:
    async def test(locks: Locks) -> None:
        terms: list[int] = []

        async def work(leadership: Leadership) -> str:
            terms.append(leadership.term)
            if len(terms) == 1:
                leadership.step_down()
                await asyncio.sleep(60)
            return "done"

        candidate = locks.leader(name, rest=0.01)
        assert await within(candidate.run_while_leader(work)) == "done"
        assert terms == sorted(terms) and len(terms) == 2
        with pytest.raises(quorlock.ConfigError):
            await within(locks.leader("").run_while_leader(work))
        async with locks.lock(name, wait=20):
            pass

    run(test)


def test_a_client_is_used_by_several_loops(server: Server, name: str) -> None:
    async def connect() -> Locks:
        return await Locks.connect(server.address)

    async def use(locks: Locks) -> int:
        async with locks.lock(name) as guard:
            return guard.token

    locks = asyncio.run(connect())
    first = asyncio.run(use(locks))
    second = asyncio.run(use(locks))
    assert first < second
    asyncio.run(locks.close())
