//! Fair locks: first come, first served.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::operate::Summary;
use quorlock::transport::{Cause, Intercept, Request, Transport, TransportError};
use quorlock::{AcquireError, ConfigError, EmbeddedNode, Locks, Mode, Name};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn name() -> Name {
    Name::new("a").unwrap()
}

/// Lets tasks that are ready run.
async fn settle() {
    sleep(Duration::from_millis(100)).await;
}

type Served = Arc<Mutex<Vec<u32>>>;

/// Waits for the lock, records its turn, and releases the lock.
fn wait(locks: &Locks, served: &Served, turn: u32) -> JoinHandle<()> {
    let (lock, served) = (locks.fair("a"), served.clone());
    tokio::spawn(async move {
        let guard = lock.acquire().await.unwrap();
        served.lock().unwrap().push(turn);
        sleep(SECOND).await;
        guard.release().await.unwrap();
    })
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_first_is_served_first_across_clients_and_within_one() {
    let node = EmbeddedNode::new();
    let clients = [
        Locks::on_node(node.clone()).unwrap(),
        Locks::on_node(node.clone()).unwrap(),
    ];
    let first = clients[0].fair("a").acquire().await.unwrap();
    let served = Served::default();
    let mut waiting = Vec::new();
    for turn in 0..12 {
        // Two waiters of the one client, then one of the other.
        let client = &clients[usize::from(turn % 3 == 0)];
        waiting.push(wait(client, &served, turn));
        settle().await;
    }
    assert_eq!(node.queue(&name()).len(), 12);
    first.release().await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), (0..12).collect::<Vec<_>>());
    assert!(node.names().is_empty() && node.queue(&name()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_costs_as_much_however_many_wait() {
    for waiters in [2, 10, 50] {
        let node = EmbeddedNode::new();
        let locks = Locks::on_node(node.clone()).unwrap();
        let first = locks.fair("a").acquire().await.unwrap();
        let waiting: Vec<_> = (0..waiters)
            .map(|_| {
                let lock = locks.fair("a");
                tokio::spawn(async move { lock.acquire().await.unwrap().release().await })
            })
            .collect();
        settle().await;
        let before = node.executed();
        first.release().await.unwrap();
        for waiting in waiting {
            waiting.await.unwrap().unwrap();
        }
        // One release, and one acquire by the waiter that was woken.
        assert_eq!(node.executed() - before, 2 * waiters + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn story_10_a_waiter_that_gives_up_leaves_the_queue() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let held = locks.fair("a").acquire().await.unwrap();
    let error = locks.fair("a").wait(SECOND).acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Contended { .. }), "{error}");
    settle().await;
    assert!(node.queue(&name()).is_empty());
    assert!(locks.fair("a").try_acquire().await.unwrap().is_none());
    assert!(node.queue(&name()).is_empty());
    // Dropped while it waits, or during its first request.
    for patience in [SECOND, Duration::ZERO] {
        let lock = locks.fair("a");
        timeout(patience, lock.acquire()).await.unwrap_err();
        settle().await;
        assert!(node.queue(&name()).is_empty());
    }
    held.release().await.unwrap();
    settle().await;
    assert!(node.names().is_empty());
}

/// A node keeps the place of a waiter for longer than a short lease. Nothing has ended with the lease if the first release
/// of the place was lost.
#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_short_lease_whose_first_release_is_lost_leaves_the_queue() {
    let node = EmbeddedNode::new();
    let held = Locks::on_node(node.clone()).unwrap().fair("a");
    let held = held.acquire().await.unwrap();
    let lost = Arc::new(Mutex::new(1));
    let losing = Intercept::new(node.clone()).on_call(move |node, request| {
        let mut left = lost.lock().unwrap();
        if matches!(request, Request::Release(_)) && 0 < *left {
            *left -= 1;
            let error = TransportError::indeterminate(Cause::TimedOut, "lost");
            return Box::pin(async move { Err(error) });
        }
        node.call(request)
    });
    let waiter = Locks::on_node(losing).unwrap().fair("a").lease(SECOND / 10);
    let error = waiter.wait(SECOND).acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Contended { .. }), "{error}");
    assert_eq!(node.queue(&name()).len(), 1, "the release was lost");
    sleep(SECOND).await;
    assert!(node.queue(&name()).is_empty());
    held.release().await.unwrap();
}

/// The first waiter in the queue was woken, and is dropped at that moment.
#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_takes_passes_on_at_once() {
    let node = EmbeddedNode::new().latency(Duration::from_millis(10));
    let locks = Locks::on_node(node.clone()).unwrap();
    let held = locks.fair("a").acquire().await.unwrap();
    let lock = locks.fair("a");
    let mut head = Box::pin(lock.acquire());
    timeout(SECOND, &mut head).await.unwrap_err();
    let lock = locks.fair("a");
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    settle().await;
    held.release().await.unwrap();
    drop(head);
    drop(timeout(SECOND, next).await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn story_10_a_dead_waiter_is_passed_over_after_a_lease() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let held = locks.fair("a").acquire().await.unwrap();
    // A waiter that is neither polled nor dropped, like one of a suspended process.
    let dying = Locks::on_node(node.clone()).unwrap().fair("a");
    let mut head = Box::pin(dying.acquire());
    timeout(SECOND, &mut head).await.unwrap_err();
    let lock = locks.fair("a");
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    settle().await;
    held.release().await.unwrap();
    sleep(20 * SECOND).await;
    assert!(!next.is_finished());
    drop(timeout(20 * SECOND, next).await.unwrap().unwrap());
    drop(head);
}

#[tokio::test(start_paused = true)]
async fn it_is_entered_again_renewed_and_lost_as_a_plain_one() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let owner = locks.owner();
    let outer = owner.fair("a").acquire().await.unwrap();
    let inner = owner.fair("a").acquire().await.unwrap();
    assert_eq!(inner.hold_count(), 2);
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    sleep(300 * SECOND).await;
    assert!(outer.is_held());
    inner.release().await.unwrap();
    locks.force_release("a").await.unwrap();
    let next = locks.fair("a").acquire().await.unwrap();
    assert!(outer.fencing_token() < next.fencing_token());
    sleep(11 * SECOND).await;
    assert!(!outer.is_held() && next.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_plain_lock_is_told_that_others_wait_for_the_fair_one() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let _held = locks.fair("a").acquire().await.unwrap();
    // Without a queue they exclude each other.
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    let lock = locks.fair("a");
    let _waiting = tokio::spawn(async move { lock.acquire().await });
    settle().await;
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    let (asked, found) = (Mode::Plain, Mode::Fair);
    let names = "a".to_owned();
    assert_eq!(
        error,
        AcquireError::OtherMode {
            names,
            asked,
            found
        }
    );
}

/// To a node both are one hash, so no client can tell which it is.
#[tokio::test(start_paused = true)]
async fn whoever_wants_to_read_or_write_is_told_that_it_may_be_a_fair_lock() {
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let _held = locks.fair("a").acquire().await.unwrap();
    for (lock, asked) in [
        (locks.read("a"), "read lock"),
        (locks.write("a"), "write lock"),
    ] {
        let error = lock.acquire().await.unwrap_err().to_string();
        let expected = format!("a: asked for a {asked}, but the name has a plain or fair lock");
        assert!(error.starts_with(&expected), "{error}");
    }
    let _written = locks.write("b").acquire().await.unwrap();
    let error = locks.fair("b").acquire().await.unwrap_err().to_string();
    let expected = "b: asked for a fair lock, but the name has a write lock";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn several_nodes_are_refused_with_the_reason() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::on_nodes(nodes).unwrap();
    let error = locks.fair("a").acquire().await.unwrap_err();
    let name = "a".to_owned();
    assert_eq!(
        error,
        AcquireError::Config(ConfigError::FairQuorum { name })
    );
    assert!(error.to_string().contains("no common order"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn it_is_taken_together_with_other_locks() {
    let nodes = [EmbeddedNode::new(), EmbeddedNode::new()];
    let clients = nodes.clone().map(|node| Locks::on_node(node).unwrap());
    let both = || clients[0].fair("a").and([clients[1].lock("b")]);
    let held = both().acquire().await.unwrap();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let lock = both();
            tokio::spawn(async move { lock.acquire().await.unwrap().release().await })
        })
        .collect();
    settle().await;
    held.release().await.unwrap();
    for waiting in waiting {
        let ended = timeout(30 * SECOND, waiting).await.unwrap();
        ended.unwrap().unwrap();
    }
    settle().await;
    for node in &nodes {
        assert!(node.names().is_empty() && node.queue(&name()).is_empty());
    }
}

/// The first waiter in the queue was woken, and does not send a request.
#[tokio::test(start_paused = true)]
async fn a_queue_behind_a_dead_waiter_is_shown_and_can_be_moved_on_by_force() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let held = locks.fair("a").acquire().await.unwrap();
    let dying = Locks::on_node(node.clone()).unwrap().fair("a");
    let mut head = Box::pin(dying.acquire());
    timeout(SECOND, &mut head).await.unwrap_err();
    let lock = locks.fair("a");
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    settle().await;
    held.release().await.unwrap();
    settle().await;
    let inspection = locks.inspect("a").await.unwrap();
    assert_eq!(inspection.summary(), Summary::Queued { nodes: 1 });
    let text = inspection.to_string();
    assert!(
        text.contains("kept for the first in the queue on 1 of 1 nodes"),
        "{text}"
    );
    assert!(text.contains("held by no owner, waiting 2"), "{text}");
    assert!(!next.is_finished());
    let freed = locks.force_release("a").await.unwrap();
    assert!(
        freed.to_string().contains("freed on 1 of 1 nodes"),
        "{freed}"
    );
    let next = timeout(SECOND / 10, next).await.unwrap().unwrap();
    next.release().await.unwrap();
    settle().await;
    assert_eq!(locks.inspect("a").await.unwrap().summary(), Summary::Free);
    drop(head);
}
