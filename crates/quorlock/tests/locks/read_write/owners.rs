//! Write and read locks of one owner.

use std::time::Duration;

use quorlock::{AcquireError, ConfirmError, EmbeddedNode, Locks, Lost, Persistence, ReleaseError};
use tokio::time::{Instant, sleep, timeout};

use super::{SECOND, clients};

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
        // It is woken, and does not wait for the TTL.
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

/// The server was down for longer than the release is retried. The reader's renewals keep what it left behind.
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

/// The readers' renewals do not extend the claim of a writer that does not renew.
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

/// A server that stays down: closing waits for no reader.
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
    // Other locks have no such limit, because what a node stores for them does not grow with the count.
    let mut guards = Vec::new();
    for _ in 0..1_100 {
        guards.push(owner.lock("b").acquire().await.unwrap());
    }
}
