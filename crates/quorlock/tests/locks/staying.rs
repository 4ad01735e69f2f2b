//! Locks that stay locked for a while after an early release.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, ConfigError, EmbeddedNode, Lock, Locks, Lost};
use tokio::time::sleep;

const LEAST: Duration = Duration::from_secs(20);

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn two() -> (EmbeddedNode, [Locks; 2]) {
    let node = EmbeddedNode::new();
    let clients = [(); 2].map(|()| Locks::on_node(node.clone()).unwrap());
    (node, clients)
}

async fn is_free(lock: &Lock) -> bool {
    match lock.try_acquire().await.unwrap() {
        None => false,
        Some(guard) => guard.release().await.is_ok(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_early_release_leaves_the_lock_until_its_time() {
    for is_dropped in [false, true] {
        let (_, [ours, theirs]) = two();
        let guard = ours.lock("a").at_least(LEAST).acquire().await.unwrap();
        sleep(second(1)).await;
        let lost = guard.lost();
        match is_dropped {
            true => drop(guard),
            false => guard.release().await.unwrap(),
        }
        for lock in [theirs.lock("a"), ours.lock("a")] {
            assert!(!is_free(&lock).await);
        }
        assert_eq!(ours.held(), 1);
        let begun = tokio::time::Instant::now();
        let guard = theirs.lock("a").acquire().await.unwrap();
        let waited = begun.elapsed();
        assert!(second(19) <= waited && waited < second(20), "{waited:?}");
        assert_eq!((lost.await, ours.held()), (Lost::Released, 0));
        guard.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_release_is_a_release() {
    let (_, [ours, theirs]) = two();
    let guard = ours.lock("a").at_least(LEAST).acquire().await.unwrap();
    sleep(LEAST).await;
    guard.release().await.unwrap();
    assert!(is_free(&theirs.lock("a")).await);
}

#[tokio::test(start_paused = true)]
async fn each_of_several_guards_stays() {
    let (_, [ours, theirs]) = two();
    let first = ours.lock("a").at_least(LEAST).acquire().await.unwrap();
    let second_guard = first.reenter().await.unwrap();
    drop(first);
    sleep(second(5)).await;
    drop(second_guard);
    assert!(!is_free(&theirs.lock("a")).await);
    sleep(second(16)).await;
    assert!(is_free(&theirs.lock("a")).await);
}

/// A process that ends must not make the lock free early.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_closed_or_dropped_leaves_the_lock_to_its_lease() {
    for is_closed in [true, false] {
        let (_, [ours, theirs]) = two();
        let lock = ours.lock("a").watchdog_lease(LEAST).at_least(LEAST);
        lock.acquire().await.unwrap().release().await.unwrap();
        let other = ours.lock("b").acquire().await.unwrap();
        drop(lock);
        if is_closed {
            ours.close().await;
            assert!(!other.is_held());
        } else {
            drop((ours, other));
        }
        sleep(second(1)).await;
        assert!(is_free(&theirs.lock("b")).await);
        assert!(!is_free(&theirs.lock("a")).await);
        sleep(second(18)).await;
        assert!(!is_free(&theirs.lock("a")).await);
        sleep(second(2)).await;
        assert!(is_free(&theirs.lock("a")).await);
    }
}

/// What stays locked is lost like any hold, and its end reports nothing.
#[tokio::test(start_paused = true)]
async fn a_lock_that_stays_may_be_lost() {
    let (node, [ours, theirs]) = two();
    let guard = ours.lock("a").at_least(LEAST).acquire().await.unwrap();
    guard.release().await.unwrap();
    theirs.force_release("a").await.unwrap();
    let guard = theirs.lock("a").acquire().await.unwrap();
    sleep(second(40)).await;
    assert!(guard.is_held());
    assert_eq!(ours.held(), 0);
    guard.release().await.unwrap();
    sleep(second(1)).await;
    assert_eq!(node.names(), []);
}

#[tokio::test(start_paused = true)]
async fn a_lock_cannot_stay_for_longer_than_its_lease() {
    let (_, [ours, _]) = two();
    let lock = ours.lock("a").at_least(LEAST);
    let error = lock.lease(second(19)).acquire().await.unwrap_err();
    assert!(
        matches!(error, AcquireError::Config(ConfigError::AtLeast { .. })),
        "{error}"
    );
}
