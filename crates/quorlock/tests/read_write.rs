//! Read-write locks: any number of readers, or one writer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test"
)]

use std::time::Duration;

use quorlock::{
    AcquireError, ConfigError, ConfirmError, EmbeddedNode, Lock, Locks, Lost, Mode, Name,
    Persistence, ReleaseError, Summary,
};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn name() -> Name {
    Name::new("a").unwrap()
}

/// A client of one node, and a client of five.
fn clients() -> [(Vec<EmbeddedNode>, Locks); 2] {
    [1, 5].map(|count| {
        let nodes: Vec<_> = (0..count).map(|_| EmbeddedNode::new()).collect();
        let settings = Locks::builder()
            .trust_fresh_nodes()
            .clock_margin(Duration::ZERO);
        let locks = settings.on_nodes(nodes.clone()).unwrap();
        (nodes, locks)
    })
}

#[tokio::test(start_paused = true)]
async fn readers_share_and_writers_exclude() {
    for (nodes, locks) in clients() {
        let one = locks.read("a").acquire().await.unwrap();
        let other = locks.read("a").acquire().await.unwrap();
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        let lock = locks.write("a");
        let writing = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(SECOND).await;
        one.release().await.unwrap();
        sleep(SECOND).await;
        assert!(!writing.is_finished());
        other.release().await.unwrap();
        let writer = timeout(SECOND, writing).await.unwrap().unwrap();
        assert!(locks.read("a").try_acquire().await.unwrap().is_none());
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        let readers: Vec<_> = (0..5)
            .map(|_| {
                let lock = locks.read("a");
                tokio::spawn(async move { lock.acquire().await.unwrap() })
            })
            .collect();
        sleep(SECOND).await;
        writer.release().await.unwrap();
        let mut guards = Vec::new();
        for reader in readers {
            guards.push(timeout(SECOND, reader).await.unwrap().unwrap());
        }
        assert!(guards.iter().all(quorlock::Guard::is_held));
        drop(guards);
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_writers_grow_and_readers_are_told_the_last() {
    for (_, locks) in clients() {
        let mut last = 0;
        for _ in 0..3 {
            let writer = locks.write("a").acquire().await.unwrap();
            let token = writer.fencing_token().0;
            assert!(last < token);
            last = token;
            writer.release().await.unwrap();
            let reader = locks.read("a").acquire().await.unwrap();
            assert_eq!(reader.fencing_token().0, last);
            reader.release().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn story_22_a_writer_goes_on_reading_renewed_and_others_are_told() {
    for (nodes, locks) in clients() {
        let owner = locks.owner();
        let writer = owner.write("a").acquire().await.unwrap();
        let reader = owner.read("a").acquire().await.unwrap();
        let lock = locks.write("a");
        let other_writer = tokio::spawn(async move { lock.acquire().await.unwrap() });
        let lock = locks.read("a");
        let other_reader = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(SECOND).await;
        assert!(!other_reader.is_finished());
        let began = Instant::now();
        writer.release().await.unwrap();
        // It is told, and need not wait for the TTL.
        let other_reader = timeout(SECOND, other_reader).await.unwrap().unwrap();
        assert!(began.elapsed() < SECOND);
        sleep(120 * SECOND).await;
        assert!(reader.is_held() && other_reader.is_held());
        assert!(!other_writer.is_finished());
        reader.release().await.unwrap();
        other_reader.release().await.unwrap();
        let other_writer = timeout(SECOND, other_writer).await.unwrap().unwrap();
        other_writer.release().await.unwrap();
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// The server was away for longer than the release is tried; the reader's renewals keep what it left behind.
#[tokio::test(start_paused = true)]
async fn a_writer_whose_release_failed_does_not_write_for_as_long_as_it_reads() {
    for away in [5, 20] {
        let node = EmbeddedNode::new().persistence(Persistence::EveryWrite);
        let locks = Locks::on_node(node.clone()).unwrap();
        let other = Locks::on_node(node.clone()).unwrap();
        let owner = locks.owner();
        let writer = owner.write("a").acquire().await.unwrap();
        let reader = owner.read("a").acquire().await.unwrap();
        node.kill();
        let released = writer.release().await;
        assert!(
            matches!(released, Err(ReleaseError::Unconfirmed { .. })),
            "{released:?}"
        );
        sleep(away * SECOND).await;
        node.restart();
        let entered = other.read("a").wait(10 * SECOND).acquire().await;
        assert!(entered.is_ok(), "away for {away} s: {entered:?}");
        sleep(120 * SECOND).await;
        assert!(reader.is_held());
        drop((entered, reader));
        sleep(SECOND).await;
        assert!(node.names().is_empty());
    }
}

/// The readers' renewals do not keep the claim of a writer that does not renew.
#[tokio::test(start_paused = true)]
async fn a_writer_without_a_watchdog_stops_to_write_when_its_lease_ends_though_it_reads() {
    for is_leaked in [false, true] {
        for (nodes, locks) in clients() {
            let owner = locks.owner();
            let lock = owner.write("a").lease(20 * SECOND);
            let writer = lock.acquire().await.unwrap();
            let reader = owner.read("a").acquire().await.unwrap();
            if is_leaked {
                writer.leak();
            }
            sleep(15 * SECOND).await;
            assert!(locks.read("a").try_acquire().await.unwrap().is_none());
            let entered = locks.read("a").wait(10 * SECOND).acquire().await;
            assert!(entered.is_ok(), "{is_leaked} {}: {entered:?}", nodes.len());
            assert!(reader.is_held());
        }
    }
}

/// A server that does not come back: closing waits for no reader.
#[tokio::test(start_paused = true)]
async fn closing_ends_the_release_of_a_writer_that_went_on_reading() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let owner = locks.owner();
    let writer = owner.write("a").acquire().await.unwrap();
    let reader = owner.read("a").acquire().await.unwrap();
    let waiting = owner.read("a");
    let mut waiting = Box::pin(waiting.acquire());
    let _ = timeout(Duration::ZERO, &mut waiting).await;
    node.kill();
    writer.release().await.unwrap_err();
    sleep(20 * SECOND).await;
    timeout(20 * SECOND, locks.close()).await.unwrap();
    assert_eq!(reader.lost().await, Lost::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_writer_enters_again_while_it_reads() {
    for (_, locks) in clients() {
        let owner = locks.owner();
        let writer = owner.write("a").acquire().await.unwrap();
        let reader = owner.read("a").acquire().await.unwrap();
        let again = owner.write("a").acquire().await.unwrap();
        assert_eq!(again.hold_count(), 2);
        let second = owner.read("a").acquire().await.unwrap();
        assert_eq!(second.hold_count(), 2);
        for guard in [again, writer, second, reader] {
            guard.release().await.unwrap();
        }
        assert!(locks.write("a").try_acquire().await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_wants_to_write_is_told_at_once() {
    for (_, locks) in clients() {
        let owner = locks.owner();
        let _reader = owner.read("a").acquire().await.unwrap();
        let names = "a".to_owned();
        let began = Instant::now();
        for result in [
            owner.write("a").acquire().await.map(Some),
            owner.write("a").try_acquire().await,
        ] {
            let error = result.unwrap_err();
            assert_eq!(
                error,
                AcquireError::Upgrade {
                    names: names.clone()
                }
            );
            assert!(error.to_string().contains("release it"), "{error}");
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn story_22_a_dead_reader_does_not_keep_writers_out_for_longer_than_its_lease() {
    for (_, locks) in clients() {
        let dead = locks.read("a").acquire().await.unwrap();
        let alive = locks.read("a").acquire().await.unwrap();
        dead.leak();
        sleep(40 * SECOND).await;
        assert!(alive.is_held());
        alive.release().await.unwrap();
        let writer = locks.write("a").try_acquire().await.unwrap();
        assert!(writer.is_some(), "the living one kept the dead one alive");
    }
}

/// A reader with a short lease set the TTL of the whole, and the others lost theirs with it.
#[tokio::test(start_paused = true)]
async fn story_22_a_short_lease_of_one_reader_cuts_nobody_else_s() {
    for (nodes, locks) in clients() {
        let long = locks.read("a").lease(20 * SECOND).acquire().await.unwrap();
        let short = locks.read("a").lease(SECOND).acquire().await.unwrap();
        sleep(5 * SECOND).await;
        assert!(long.is_held() && !short.is_held());
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        let lasting = locks.read("a").lease(2 * SECOND).acquire().await.unwrap();
        lasting.release().await.unwrap();
        assert!(locks.write("a").try_acquire().await.unwrap().is_none());
        sleep(16 * SECOND).await;
        assert!(!long.is_held());
        assert!(locks.write("a").try_acquire().await.unwrap().is_some());
        drop((long, short));
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// Renewals of a reader that had been entered twice went on when it had left twice.
#[tokio::test(start_paused = true)]
async fn story_22_no_renewal_of_a_reader_outlives_its_release() {
    for (nodes, locks) in clients() {
        let owner = locks.owner();
        let outer = owner.read("a").acquire().await.unwrap();
        let inner = owner.read("a").acquire().await.unwrap();
        let other = locks.read("a").acquire().await.unwrap();
        sleep(25 * SECOND).await;
        inner.release().await.unwrap();
        outer.release().await.unwrap();
        assert!(nodes.iter().all(|node| node.readers(&name()).len() == 1));
        other.release().await.unwrap();
        sleep(SECOND).await;
        let executed: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
        sleep(120 * SECOND).await;
        let later: Vec<_> = nodes.iter().map(EmbeddedNode::executed).collect();
        assert_eq!(executed, later);
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// Reads for a second, then again, through a turnstile or not.
async fn keep_reading(locks: Locks, turnstile: Option<&'static str>) {
    loop {
        let pass = match turnstile {
            Some(name) => Some(locks.fair(name).acquire().await.unwrap()),
            None => None,
        };
        let reader = locks.read("a").acquire().await.unwrap();
        drop(pass);
        sleep(SECOND).await;
        reader.release().await.unwrap();
    }
}

/// What the guide says for whoever needs it.
#[tokio::test(start_paused = true)]
async fn a_turnstile_lets_a_writer_in_whom_readers_would_keep_out_for_ever() {
    for turnstile in [None, Some("a/turnstile")] {
        let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
        let mut readers = Vec::new();
        for _ in 0..3 {
            readers.push(tokio::spawn(keep_reading(locks.clone(), turnstile)));
            sleep(SECOND / 3).await;
        }
        let _place = match turnstile {
            Some(name) => Some(locks.fair(name).acquire().await.unwrap()),
            None => None,
        };
        let wanted = locks.write("a").wait(20 * SECOND).acquire().await;
        assert_eq!(wanted.is_ok(), turnstile.is_some(), "{wanted:?}");
        readers.iter().for_each(|reader| reader.abort());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_renewed_and_learns_of_its_loss() {
    for (nodes, locks) in clients() {
        let reader = locks.read("a").acquire().await.unwrap();
        let other = locks.read("a").acquire().await.unwrap();
        sleep(300 * SECOND).await;
        assert!(reader.is_held());
        locks.force_release("a").await.unwrap();
        assert_eq!(timeout(11 * SECOND, reader.lost()).await, Ok(Lost::Taken));
        assert_eq!(timeout(SECOND, other.lost()).await, Ok(Lost::Taken));
        assert!(nodes.iter().all(|node| node.readers(&name()).is_empty()));
    }
}

#[tokio::test(start_paused = true)]
async fn other_kinds_of_locks_on_the_name_are_named() {
    for (_, locks) in clients() {
        let plain = locks.lock("a").acquire().await.unwrap();
        for (asked, lock) in [
            (Mode::Read, locks.read("a")),
            (Mode::Write, locks.write("a")),
        ] {
            let error = lock.acquire().await.unwrap_err();
            let (names, found) = ("a".to_owned(), Mode::Plain);
            assert_eq!(
                error,
                AcquireError::OtherMode {
                    names,
                    asked,
                    found
                }
            );
        }
        plain.release().await.unwrap();
        let _writer = locks.write("a").acquire().await.unwrap();
        let error = locks.lock("a").acquire().await.unwrap_err();
        assert!(
            matches!(
                error,
                AcquireError::OtherMode {
                    asked: Mode::Plain,
                    found: Mode::Write,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn several_are_taken_together_but_no_name_in_two_modes() {
    for (nodes, locks) in clients() {
        let both = Lock::all([locks.read("a"), locks.write("b")]).unwrap();
        let guard = both.acquire().await.unwrap();
        assert!(locks.read("a").try_acquire().await.unwrap().is_some());
        assert!(locks.read("b").try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        let error = Lock::all([locks.read("a"), locks.write("a")]).unwrap_err();
        let (name, modes) = ("a".to_owned(), [Mode::Read, Mode::Write]);
        assert_eq!(error, ConfigError::TwoModes { name, modes });
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// A reader with a longer lease has left, so the whole lives for longer than those who are in it.
#[tokio::test(start_paused = true)]
async fn dead_readers_in_a_hash_that_lives_are_in_nobody_s_way() {
    for (nodes, locks) in clients() {
        let long = locks.read("a").acquire().await.unwrap();
        let dead = locks.read("a").lease(2 * SECOND).acquire().await.unwrap();
        dead.leak();
        long.release().await.unwrap();
        let needed = nodes.len();
        let read = Summary::Read { nodes: needed };
        assert_eq!(locks.inspect("a").await.unwrap().summary(), read);
        let began = Instant::now();
        let writer = locks.write("a").acquire().await.unwrap();
        let waited = began.elapsed();
        assert!(waited < 3 * SECOND, "{waited:?}");
        drop(writer);
        sleep(SECOND).await;

        let long = locks.read("a").acquire().await.unwrap();
        locks
            .read("a")
            .lease(2 * SECOND)
            .acquire()
            .await
            .unwrap()
            .leak();
        long.release().await.unwrap();
        sleep(3 * SECOND).await;
        let inspection = locks.inspect("a").await.unwrap();
        assert_eq!(inspection.summary(), Summary::Free, "{inspection}");
        assert_eq!(
            nodes
                .iter()
                .filter(|node| node.held(&name()).is_some())
                .count(),
            needed
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_lock_is_entered_a_thousand_times_and_no_more() {
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let owner = locks.owner();
    let mut guards = Vec::new();
    for _ in 0..1_000 {
        guards.push(owner.read("a").acquire().await.unwrap());
    }
    let (names, most) = ("a".to_owned(), 1_000);
    let error = owner.read("a").acquire().await.unwrap_err();
    let expected = AcquireError::TooManyEntries {
        names: names.clone(),
        most,
    };
    assert_eq!(error, expected);
    let error = guards[0].reenter().await.unwrap_err();
    assert_eq!(error, ConfirmError::TooManyEntries { names, most });
    assert!(error.to_string().contains("release a guard"), "{error}");
    drop(guards.pop());
    guards.push(owner.read("a").acquire().await.unwrap());
    assert_eq!(guards[0].hold_count(), 1_000);
    // Others have no such bound: what they keep does not grow with it.
    let mut guards = Vec::new();
    for _ in 0..1_100 {
        guards.push(owner.lock("b").acquire().await.unwrap());
    }
}

/// They come at once, and a writer of another client is in the way: one asks for itself, and one on behalf of the rest.
#[tokio::test(start_paused = true)]
async fn readers_that_come_at_once_behind_a_writer_do_not_each_ask() {
    for count in [2, 200] {
        let node = EmbeddedNode::new().latency(Duration::from_millis(20));
        let locks = Locks::on_node(node.clone()).unwrap();
        let other = Locks::on_node(node.clone()).unwrap();
        let writer = other.write("a").acquire().await.unwrap();
        let before = node.executed();
        let readers: Vec<_> = (0..count)
            .map(|_| {
                let lock = locks.read("a");
                tokio::spawn(async move { lock.acquire().await.unwrap() })
            })
            .collect();
        sleep(SECOND / 2).await;
        assert_eq!(node.executed() - before, 3, "by {count}");
        writer.release().await.unwrap();
        for reader in readers {
            assert!(reader.await.unwrap().is_held());
        }
    }
}

/// Two hundred readers of one name in one process: they share it, and need not wait for each other's round trips.
#[tokio::test(start_paused = true)]
async fn readers_of_one_process_come_in_together() {
    let node = EmbeddedNode::new().latency(Duration::from_millis(20));
    let locks = Locks::on_node(node.clone()).unwrap();
    let begin = |count: usize| {
        let one = || {
            let lock = locks.read("a");
            tokio::spawn(async move { lock.acquire().await.unwrap() })
        };
        (0..count).map(|_| one()).collect::<Vec<_>>()
    };
    let began = Instant::now();
    let mut guards = Vec::new();
    for reader in begin(200) {
        guards.push(reader.await.unwrap());
    }
    let took = began.elapsed();
    assert!(took < SECOND / 10, "on a free name: {took:?}");
    drop(guards);
    sleep(SECOND).await;

    // Behind a writer one of them asks on behalf of all.
    let writer = locks.write("a").acquire().await.unwrap();
    let first = begin(1);
    sleep(SECOND).await;
    let before = node.executed();
    let readers = begin(199);
    sleep(3 * SECOND).await;
    assert_eq!(node.executed(), before);
    writer.release().await.unwrap();
    let began = Instant::now();
    let mut guards = Vec::new();
    for reader in first.into_iter().chain(readers) {
        guards.push(reader.await.unwrap());
    }
    let took = began.elapsed();
    assert!(took < SECOND / 10, "behind a writer: {took:?}");
    assert_eq!(node.readers(&name()).len(), 200);
}
