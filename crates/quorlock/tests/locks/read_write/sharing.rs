//! Which owners share a read-write lock, and which are kept out.

use std::time::Duration;

use quorlock::{AcquireError, ConfigError, EmbeddedNode, Locks, Mode};
use tokio::time::{Instant, sleep, timeout};

use super::{SECOND, clients, name};

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

/// Reads for a second, again and again, through a turnstile or not.
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

/// The recipe of the page about locks for readers and writers.
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
        let both = locks.read("a").and([locks.write("b")]);
        let guard = both.acquire().await.unwrap();
        assert!(locks.read("a").try_acquire().await.unwrap().is_some());
        assert!(locks.read("b").try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        let twice = locks.read("a").and([locks.write("a")]);
        let error = twice.try_acquire().await.unwrap_err();
        let (name, modes) = ("a".to_owned(), [Mode::Read, Mode::Write]);
        let expected = ConfigError::TwoModes { name, modes };
        assert_eq!(error, AcquireError::Config(expected));
        sleep(SECOND).await;
        assert!(nodes.iter().all(|node| node.names().is_empty()));
    }
}

/// They arrive together, and a writer of another client is in the way: one reader sends its own request, and one sends
/// a request on behalf of the rest.
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

/// Two hundred readers of one name in one process share it, and do not wait for each other's round trips.
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

    // Behind a writer one of them sends the requests of all.
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
