//! The retry policy and the longest hold, in virtual time.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, Locks, Lost, Name, Persistence, RetryPolicy};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn an_acquisition_fails_after_as_long_without_a_quorum_as_allowed() {
    for seconds in [1, 3, 60] {
        let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
        let policy = RetryPolicy::default().without_quorum(seconds * SECOND);
        let locks = Locks::builder().trust_fresh_nodes().retry(policy);
        let locks = locks.on_nodes(nodes.clone()).unwrap();
        nodes[1].kill();
        nodes[2].kill();
        let began = Instant::now();
        let error = locks.lock("a").acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
        let took = began.elapsed();
        let expected = seconds * SECOND;
        assert!(expected <= took && took <= expected + Duration::from_millis(2));
        sleep(SECOND).await;
        // Each round sends an acquire, which is granted, and its release. Pauses grow to a second.
        let rounds = nodes[0].executed() / 2;
        assert!(
            (4..=8 + 4 * u64::from(seconds)).contains(&rounds),
            "{rounds}"
        );
        assert_eq!(nodes[0].names(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn no_pause_is_longer_than_the_cap() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let cap = Duration::from_millis(20);
    let policy = RetryPolicy::default().backoff_cap(cap);
    let locks = Locks::builder().trust_fresh_nodes().retry(policy);
    let locks = locks.on_nodes(nodes.clone()).unwrap();
    nodes[1].kill();
    nodes[2].kill();
    let waited = 4 * SECOND;
    locks.lock("a").wait(waited).acquire().await.unwrap_err();
    // Tokio's timer counts in milliseconds, rounded up. Each round sends an acquire, which is granted, and its
    // release.
    let most = cap + Duration::from_millis(1);
    let rounds = u32::try_from(nodes[0].executed() / 2).unwrap();
    assert!(waited <= rounds * most, "{rounds} rounds");
    // Pauses that are uniform up to the cap are not close to zero.
    assert!(rounds * most / 4 < waited, "{rounds} rounds");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_looks_again_after_the_poll_cap_though_nothing_wakes_it() {
    let node = EmbeddedNode::new();
    let policy = RetryPolicy::default().poll_cap(2 * SECOND);
    let locks = Locks::builder().trust_fresh_nodes().retry(policy);
    let locks = locks.on_node(node.clone()).unwrap();
    let other = Locks::on_node(node.clone()).unwrap();
    // A claim without expiry, whose end is not published.
    let owner = other.lock("b").acquire().await.unwrap().owner_id();
    let held = Held::Plain { owner, count: 1 };
    node.put(&Name::new("a").unwrap(), held, None);
    let waiting = tokio::spawn(async move { locks.lock("a").acquire().await.unwrap() });
    sleep(10 * SECOND).await;
    assert!(!waiting.is_finished());
    node.flush();
    let began = Instant::now();
    drop(waiting.await.unwrap());
    assert!(began.elapsed() <= 2 * SECOND + Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_held_longer_than_the_longest_hold() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder().trust_fresh_nodes().max_hold(100 * SECOND);
    let locks = locks.on_nodes(nodes.clone()).unwrap();
    let began = Instant::now();
    let guard = locks.lock("a").acquire().await.unwrap();
    sleep(95 * SECOND).await;
    assert!(guard.is_held() && guard.validity() <= 5 * SECOND);
    guard.extend(60 * SECOND).await.unwrap();
    assert!(guard.validity() <= 5 * SECOND);
    assert_eq!(guard.lost().await, Lost::Expired);
    let held = began.elapsed();
    assert!(99 * SECOND < held && held <= 100 * SECOND + Duration::from_millis(1));
    // The claim is released, not left to its TTL.
    sleep(Duration::from_millis(20)).await;
    assert!(nodes.iter().all(|node| node.names().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn another_mode_is_not_waited_out() {
    let node = EmbeddedNode::new();
    node.put(
        &Name::new("a").unwrap(),
        Held::read(
            "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31".parse().unwrap(),
            1,
        ),
        None,
    );
    let locks = Locks::on_node(node).unwrap();
    let began = Instant::now();
    let error = locks.lock("a").acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::OtherMode { .. }), "{error}");
    assert!(began.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_settings_of_a_node_apply_after_it_was_cloned() {
    let node = EmbeddedNode::new();
    let clone = node.clone();
    let node = node.latency(SECOND).persistence(Persistence::EveryWrite);
    let locks = Locks::on_node(node).unwrap();
    let began = Instant::now();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(SECOND <= began.elapsed());
    clone.kill();
    clone.restart();
    assert_eq!(clone.names().len(), 1);
    drop(guard);
}
