//! Acquiring, holding and losing locks on embedded nodes, in virtual time.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::operate::Ttl;
use quorlock::{AcquireError, EmbeddedNode, Locks, Lost, Name};
use tokio::time::{advance, sleep};

fn five() -> (Vec<EmbeddedNode>, Locks) {
    let nodes: Vec<_> = (0..5).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    (nodes, locks)
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// Lets background tasks run, without much time passing.
async fn settle() {
    for _ in 0..10 {
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_excludes_others_until_it_is_released() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let lock = locks.lock("a");
    let guard = lock.acquire().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_some());
    settle().await;
    assert_eq!(node.names(), []);
}

#[tokio::test(start_paused = true)]
async fn a_majority_is_enough_and_a_minority_is_not() {
    let (nodes, locks) = five();
    let lock = locks.lock("a");
    nodes[0].kill();
    nodes[1].pause();
    let guard = lock.acquire().await.unwrap();
    assert!(
        lock.clone()
            .wait(Duration::from_secs(1))
            .acquire()
            .await
            .is_err()
    );
    guard.release().await.unwrap();
    nodes[2].kill();
    let error = lock.acquire().await.unwrap_err();
    assert!(
        matches!(&error, AcquireError::NoQuorum { nodes, .. } if nodes.len() == 3),
        "{error}"
    );
    settle().await;
    assert!(nodes[3].names().is_empty() && nodes[4].names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_watchdog_keeps_a_lock_for_as_long_as_the_guard_lives() {
    let (nodes, locks) = five();
    let guard = locks.lock("a").acquire().await.unwrap();
    for _ in 0..300 {
        advance(Duration::from_secs(1)).await;
        settle().await;
        assert!(guard.is_held());
        assert!(Duration::from_secs(15) < guard.validity());
    }
    drop(guard);
    settle().await;
    for node in &nodes {
        assert_eq!(node.names(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_explicit_lease_ends_by_itself_and_the_holder_is_told() {
    let (_, locks) = five();
    let lock = locks.lock("a").lease(Duration::from_secs(10));
    let guard = lock.acquire().await.unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(guard.lost().await, Lost::Expired);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(!guard.is_held());
    assert!(guard.release().await.is_err());
    lock.acquire().await.unwrap().release().await.unwrap();
}

/// Each lock of one client can have a renewed lease of its own, and the last setting counts.
#[tokio::test(start_paused = true)]
async fn a_lock_with_a_watchdog_lease_of_its_own_is_renewed() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let lease = Duration::from_secs(3);
    let renewed = locks.lock("a").lease(lease).watchdog_lease(lease);
    let fixed = locks.lock("b").watchdog_lease(lease).lease(lease);
    let renewed = renewed.acquire().await.unwrap();
    let fixed = fixed.acquire().await.unwrap();
    for _ in 0..100 {
        sleep(Duration::from_millis(300)).await;
        assert!(renewed.is_held() && renewed.validity() < lease);
    }
    assert_eq!(fixed.lost().await, Lost::Expired);
    // A dead holder's name is free after the lease of the lock, not after that of the client.
    let (_, ttl) = node.held(&name("a")).unwrap();
    assert!(matches!(ttl, Ttl::Millis(left) if left <= 3_000), "{ttl:?}");
    renewed.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_is_cancelled_when_the_nodes_go_away() {
    let (nodes, locks) = five();
    let guard = locks.lock("a").acquire().await.unwrap();
    let work = async {
        for node in &nodes {
            node.pause();
        }
        std::future::pending::<()>().await;
    };
    let began = tokio::time::Instant::now();
    let ended = guard.while_held(async |_| work.await).await;
    assert_eq!(ended, Err(Lost::Unreachable));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn waiters_of_one_process_take_turns() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let lock = locks.lock("a");
    let counter = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let mut tasks = Vec::new();
    for _ in 0..50 {
        let (lock, counter) = (lock.clone(), counter.clone());
        tasks.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let before = counter.load(std::sync::atomic::Ordering::Relaxed);
            sleep(Duration::from_millis(5)).await;
            counter.store(before + 1, std::sync::atomic::Ordering::Relaxed);
            guard.release().await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(counter.load(std::sync::atomic::Ordering::Relaxed), 50);
    let commands = node.executed();
    assert!(commands <= 50 * 4, "{commands} commands for 50 hand-overs");
}

#[tokio::test(start_paused = true)]
async fn several_locks_in_different_orders_make_progress() {
    let (nodes, locks) = five();
    let other = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let run = |locks: Locks, names: [&'static str; 2]| async move {
        for _ in 0..20 {
            let guard = locks.all(names).acquire().await.unwrap();
            sleep(Duration::from_millis(3)).await;
            guard.release().await.unwrap();
        }
    };
    let one = tokio::spawn(run(locks, ["a", "b"]));
    let two = tokio::spawn(run(other, ["b", "a"]));
    one.await.unwrap();
    two.await.unwrap();
    settle().await;
    for node in &nodes {
        assert_eq!(node.names(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_enters_its_own_lock_again() {
    let (nodes, locks) = five();
    let owner = locks.owner();
    let outer = owner.lock("a").acquire().await.unwrap();
    let inner = owner.lock("a").acquire().await.unwrap();
    assert_eq!(inner.hold_count(), 2);
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    inner.release().await.unwrap();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    outer.release().await.unwrap();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
    assert!(nodes[0].stored_token(&name("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn tokens_grow_from_hold_to_hold() {
    let (nodes, locks) = five();
    let mut last = None;
    for round in 0..40usize {
        nodes[round % 5].kill();
        let guard = locks.lock("a").acquire().await.unwrap();
        assert!(
            last < Some(guard.fencing_token()),
            "{last:?} then {guard:?}"
        );
        last = Some(guard.fencing_token());
        guard.release().await.unwrap();
        settle().await;
        // Each node restarts without its counter, but a majority always keeps its own.
        nodes[round % 5].restart();
    }
}

#[tokio::test(start_paused = true)]
async fn closing_gives_everything_back_and_ends_every_wait() {
    let (nodes, locks) = five();
    let held = locks.lock("a").acquire().await.unwrap();
    let waiting = {
        let lock = locks.lock("a");
        tokio::spawn(async move { lock.acquire().await.map(drop) })
    };
    settle().await;
    locks.close().await;
    assert_eq!(waiting.await.unwrap(), Err(AcquireError::Closed));
    assert_eq!(held.lost().await, Lost::Closed);
    for node in &nodes {
        assert_eq!(node.names(), []);
    }
}
