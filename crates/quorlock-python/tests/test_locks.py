"""Locks for threads, on a real server."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Callable

import pytest
from servers import Server, until

import quorlock


def test_a_lock_is_held_in_its_block_and_free_afterwards(locks: quorlock.Locks, name: str) -> None:
    lock = locks.lock(name)
    with lock as guard:
        assert guard.is_held
        assert 0 < guard.validity <= 30
        assert guard.names == (name,)
        assert guard.hold_count == 1
        guard.check()
        assert lock.try_acquire() is None
        assert locks.held == 1
    assert not guard.is_held
    assert locks.held == 0
    other = lock.try_acquire()
    assert other is not None
    other.release()


def test_tokens_grow_and_stay_readable_after_the_release(locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name) as first:
        pass
    with locks.lock(name) as second:
        pass
    assert first.token < second.token
    assert second.token_of(name) == second.token
    assert second.token_of("another") is None
    assert second.owner_id != first.owner_id
    assert second.names == (name,)


def test_a_wait_ends_with_the_time_that_it_was_given(locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name):
        with pytest.raises(quorlock.AcquireError) as caught:
            locks.lock(name, wait=timedelta(milliseconds=50)).acquire()
        assert caught.value.kind is quorlock.ErrorKind.BUSY
        assert caught.value.case == "contended"
        with pytest.raises(quorlock.AcquireError):
            locks.lock(name, wait=0).acquire()


def test_threads_exclude_each_other(server: Server, name: str) -> None:
    inside, most, passed = 0, 0, 0

    def work(locks: quorlock.Locks) -> None:
        nonlocal inside, most, passed
        lock = locks.lock(name)
        for _ in range(20):
            with lock:
                inside += 1
                most = max(most, inside)
                passed += 1
                inside -= 1

    clients = [quorlock.Locks.connect(server.address) for _ in range(2)]
    threads = [threading.Thread(target=work, args=(clients[number % 2],)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, passed) == (1, 120)
    for client in clients:
        client.close()


def test_one_object_is_entered_by_several_threads(locks: quorlock.Locks, name: str) -> None:
    lock = locks.read(name)
    meeting = threading.Barrier(3)
    tokens: list[int] = []

    def read() -> None:
        with lock as guard:
            meeting.wait(timeout=20)
            tokens.append(guard.token)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 3
    assert locks.held == 0


def test_a_block_that_raises_releases_and_passes_the_error_on(locks: quorlock.Locks, name: str) -> None:
    with pytest.raises(ZeroDivisionError), locks.lock(name):
        _ = 1 // 0
    assert locks.held == 0


def test_a_guard_that_is_no_longer_used_is_released(locks: quorlock.Locks, name: str) -> None:
    guard = locks.lock(name).acquire()
    assert locks.lock(name).try_acquire() is None
    lost = guard.lost  # which does not hold the lock
    del guard
    with locks.lock(name, wait=20):
        assert lost.wait(timeout=20) is quorlock.Lost.RELEASED


def test_a_second_release_says_so(locks: quorlock.Locks, name: str) -> None:
    guard = locks.lock(name).acquire()
    guard.release()
    with pytest.raises(quorlock.ReleaseError, match="released before") as caught:
        guard.release()
    assert caught.value.case == "released"
    with pytest.raises(quorlock.LostError) as lost:
        guard.check()
    assert lost.value.how is quorlock.Lost.RELEASED


def test_a_release_in_the_block_is_in_order(locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name) as guard:
        guard.release()


def test_readers_share_and_exclude_writers(locks: quorlock.Locks, name: str) -> None:
    with locks.read(name), locks.read(name):
        assert locks.write(name).try_acquire() is None
    with locks.write(name):
        assert locks.read(name).try_acquire() is None


def test_a_fair_lock_serves_in_order(server: Server, locks: quorlock.Locks, name: str) -> None:
    order: list[int] = []
    clients = [quorlock.Locks.connect(server.address) for _ in range(3)]

    def wait(number: int) -> None:
        with clients[number].fair(name):
            order.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
    with locks.fair(name):
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda number=number: f"waiting {number + 1}" in locks.inspect(name).text)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2]
    for client in clients:
        client.close()


def test_several_names_are_taken_together(locks: quorlock.Locks, name: str) -> None:
    names = [f"{name}/{number}" for number in range(3)]
    with locks.all(names) as guard:
        assert set(guard.names) == set(names)
        assert all(guard.token_of(one) for one in names)
        assert locks.lock(names[1]).try_acquire() is None
    with locks.lock(names[1]):
        assert locks.all(names).try_acquire() is None
    both = locks.lock(names[0]).together_with(locks.read(names[1]))
    with both, locks.read(names[1]):
        assert locks.write(names[1]).try_acquire() is None


def test_one_name_is_not_taken_for_its_letters(locks: quorlock.Locks) -> None:
    with pytest.raises(TypeError, match="not one name"):
        locks.all("abc")


def test_a_semaphore_has_as_many_holders_as_permits(locks: quorlock.Locks, name: str) -> None:
    semaphore = locks.semaphore(name, 2)
    with semaphore, semaphore as second:
        assert semaphore.try_acquire() is None
        assert second.names[0].startswith(f"{{{name}}}:permit:")
    with semaphore, semaphore:
        pass


def test_an_owner_enters_its_hold_again(locks: quorlock.Locks, name: str) -> None:
    owner = locks.owner()
    with owner.lock(name) as outer, owner.lock(name) as inner:
        assert inner.hold_count == 2
        assert inner.token == outer.token
    with locks.lock(name) as outer:
        inner = outer.reenter()
        outer.release()
        assert inner.is_held
        assert locks.lock(name).try_acquire() is None
        inner.release()


def test_a_fixed_lease_ends_and_can_be_extended(locks: quorlock.Locks, name: str) -> None:
    guard = locks.lock(name, lease=30).acquire()
    guard.extend(60)
    assert 50 < guard.validity <= 60
    with pytest.raises(quorlock.ConfigError, match="longest_lease"):
        guard.extend(61)
    guard.release()
    with pytest.raises(quorlock.ReleaseError):
        guard.extend(10)
    guard = locks.lock(name, lease=0.1).acquire()
    assert guard.lost.wait(timeout=20) is quorlock.Lost.EXPIRED
    with pytest.raises(quorlock.LostError):
        guard.extend(10)


def test_a_block_whose_lock_was_lost_says_so(locks: quorlock.Locks, name: str) -> None:
    with pytest.raises(quorlock.ReleaseError) as caught, locks.lock(name, lease=0.1) as guard:
        guard.lost.wait()
    assert caught.value.case == "not_held"
    assert caught.value.kind is quorlock.ErrorKind.LOST


def test_a_leaked_lock_stays_locked_until_its_lease_ends(locks: quorlock.Locks, name: str) -> None:
    locks.lock(name, lease=0.3).acquire().leak()
    assert locks.lock(name).try_acquire() is None
    with locks.lock(name, wait=20):
        pass


def test_a_lock_stays_locked_for_at_least_as_long_as_asked(locks: quorlock.Locks, name: str) -> None:
    tick = locks.lock(name, at_least=20)
    with tick:
        pass
    assert tick.try_acquire() is None


def test_items_are_yielded_while_the_lock_is_held(locks: quorlock.Locks, name: str) -> None:
    seen: list[int] = []
    with pytest.raises(quorlock.ReleaseError), locks.lock(name) as guard:
        assert list(guard.while_held("abc")) == ["a", "b", "c"]
        with pytest.raises(quorlock.LostError):
            for number in guard.while_held(range(5)):
                seen.append(number)
                if number == 2:
                    locks.force_release(name)
                    with pytest.raises(quorlock.LostError):
                        guard.extend(40)  # asks the node, so that the loss is noticed at once
    assert seen == [0, 1, 2]


def test_a_signal_calls_back_once(locks: quorlock.Locks, name: str) -> None:
    told: list[quorlock.Lost] = []
    guard = locks.lock(name, lease=0.1).acquire()
    guard.lost.add_callback(told.append)
    until(lambda: told == [quorlock.Lost.EXPIRED])
    assert guard.lost.how is quorlock.Lost.EXPIRED
    guard.lost.add_callback(told.append)
    until(lambda: told == [quorlock.Lost.EXPIRED] * 2)
    with locks.lock(name) as guard:
        assert guard.lost.wait(timeout=0.01) is None
        assert not guard.lost.is_set()
        guard.lost.add_callback(told.append)
    # Callbacks are called in order, so that of the released lock would be before this one.
    last = locks.lock(name, lease=0.1).acquire()
    last.lost.add_callback(told.append)
    until(lambda: told[2:] == [quorlock.Lost.EXPIRED])


def test_a_callback_that_raises_is_logged_and_stops_no_other(
    locks: quorlock.Locks, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[quorlock.Lost] = []

    def fail(_: quorlock.Lost) -> None:
        raise RuntimeError("of the callback")

    guard = locks.lock(name, lease=0.1).acquire()
    guard.lost.add_callback(fail)
    guard.lost.add_callback(told.append)
    until(lambda: told)
    until(lambda: "of the callback" in caplog.text)


def test_names_are_text_or_bytes(locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name.encode() + b"\xff") as guard:
        assert guard.names[0].encode("utf-8", "surrogateescape") == name.encode() + b"\xff"
        assert guard.token_of(name.encode() + b"\xff") == guard.token
    with locks.lock("größe/" + name) as guard:
        assert guard.names == ("größe/" + name,)


def test_operators_see_and_free_a_name(locks: quorlock.Locks, name: str) -> None:
    assert locks.inspect(name).state == "free"
    guard = locks.lock(name).acquire()
    seen = locks.inspect(name)
    assert (seen.state, seen.owner, seen.nodes) == ("held", guard.owner_id, 1)
    assert name in str(seen)
    assert locks.force_release(name) == 1
    assert locks.force_release(name) == 0
    locks.ready()
    with pytest.raises(quorlock.ReleaseError) as caught:
        guard.release()
    assert caught.value.case == "not_held"


def test_operators_see_the_label_of_the_client_that_holds(server: Server, locks: quorlock.Locks, name: str) -> None:
    with quorlock.Locks.connect(server.address, label="host-7/worker", watch_claims=False) as labelled, labelled.lock(name):
        assert (locks.inspect(name).client or "").startswith("host-7/worker at 127.0.0.1:")
    with locks.lock(name):
        assert locks.inspect(name).client is None


def test_a_namespace_begins_every_key(new_server: Callable[..., Server]) -> None:
    server = new_server()
    with quorlock.Locks.connect(server.address, namespace="shop:", key_prefix="app:") as shop, shop.lock("orders/42"):
        assert server.keys() == {"shop:app:orders/42", "shop:redisson_lock_token:{shop:app:orders/42}"}


def test_a_hold_passes_to_another_client(server: Server, locks: quorlock.Locks, name: str) -> None:
    with locks.lock(name) as guard:
        ticket = guard.hand_over()
        assert guard.lost.how is quorlock.Lost.RELEASED
        assert locks.lock(name).try_acquire() is None
        with pytest.raises(quorlock.ReleaseError) as caught:
            guard.hand_over()
        assert caught.value.case == "released"
    with quorlock.Locks.connect(server.address) as worker:
        adopted = worker.adopt(ticket)
        assert adopted is not None and guard.token < adopted.token
        assert worker.adopt(ticket) is None
        adopted.release()
    with locks.lock(name):
        pass


def test_a_guard_is_ended_once_by_threads_that_race(locks: quorlock.Locks, name: str) -> None:
    """Also without a global interpreter lock: of several threads that end one guard, one does, and readers see it whole."""
    for turn in range(30):
        guard = locks.lock(f"{name}/{turn}").acquire()
        meeting = threading.Barrier(4)

        def end(how: Callable[[], object], meeting: threading.Barrier = meeting) -> str:
            meeting.wait(timeout=20)
            try:
                how()
            except quorlock.ReleaseError as error:
                return error.case
            return "ended"

        with ThreadPoolExecutor(4) as threads:
            ended = threads.map(end, (guard.release, guard.hand_over, guard.release, guard.leak))
        assert sorted(ended) == ["ended", "released", "released", "released"]
        assert (guard.is_held, guard.hold_count, guard.names, guard.validity) == (False, 0, (f"{name}/{turn}",), 0)


def test_a_hold_that_cannot_be_handed_over_goes_on(locks: quorlock.Locks, name: str) -> None:
    def refused(guard: quorlock.Guard) -> str:
        with pytest.raises(quorlock.HandOverError) as caught:
            guard.hand_over()
        guard.check()
        return caught.value.case

    with locks.read(name) as reader:
        assert refused(reader) == "reads"
    with locks.lock(name) as guard, guard.reenter():
        assert refused(guard) == "shared"
    lost = locks.lock(name, lease=0.1).acquire()
    lost.lost.wait(timeout=20)
    with pytest.raises(quorlock.LostError) as caught:
        lost.hand_over()
    assert caught.value.how is quorlock.Lost.EXPIRED
    with pytest.raises(quorlock.ConfigError, match="ticket") as invalid:
        locks.adopt("orders/42")
    assert invalid.value.case == "ticket"


def test_a_closed_client_holds_nothing_and_says_so(server: Server, name: str) -> None:
    locks = quorlock.Locks.connect(server.address)
    guard = locks.lock(name).acquire()
    locks.close()
    assert guard.lost.how is quorlock.Lost.CLOSED
    with pytest.raises(quorlock.ClosedError):
        locks.lock(name).acquire()
    assert server.keys().isdisjoint({name})


def test_prefixes_separate_clients(server: Server, locks: quorlock.Locks, name: str) -> None:
    with quorlock.Locks.connect(server.address, key_prefix="shop:") as shop, shop.lock(name) as guard:
        assert guard.names == (name,)
        assert f"shop:{name}" in server.keys()
        with locks.lock(name):
            pass


def test_a_candidate_leads_and_steps_down(locks: quorlock.Locks, name: str) -> None:
    with locks.leader(name, rest=20).campaign() as candidacy:
        elected = next(candidacy)
        assert isinstance(elected, quorlock.Elected)
        leadership = elected.leadership
        assert leadership.is_leading
        assert leadership.term == elected.term
        assert 0 < leadership.validity
        view = next(iter(locks.observe_leader(name)))
        assert (view.state, view.owner, view.term) == ("led", leadership.owner_id, elected.term)
        leadership.step_down()
        assert not leadership.is_leading
        assert next(candidacy) == quorlock.TermLost(elected.term, quorlock.Lost.RELEASED)
        assert next(iter(locks.observe_leader(name))).state == "vacant"


def test_events_of_a_candidate_that_cannot_be_end(locks: quorlock.Locks) -> None:
    events = list(locks.leader("").campaign())
    assert len(events) == 1
    assert isinstance(events[0], quorlock.Failed)
    assert isinstance(events[0].error, quorlock.ConfigError)


def test_locks_in_a_file(new_server: Callable[..., Server], tmp_path: object) -> None:
    address = f"sqlite:{tmp_path}/locks.db"
    assert quorlock.Locks.init(address)
    assert "CREATE TABLE" in (quorlock.schema(address) or "").upper()
    assert quorlock.schema("redis://localhost/") is None
    with quorlock.Locks.connect(address) as locks, locks.lock("orders/42") as guard:
        assert guard.is_held
        assert locks.lock("orders/42").try_acquire() is None
