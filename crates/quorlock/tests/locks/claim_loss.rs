//! A hold learns at once that its claim was removed by others.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{EmbeddedNode, Lock, Locks, LocksBuilder, Lost};
use tokio::time::{Instant, sleep, timeout};

const MS: Duration = Duration::from_millis(1);

/// Longer than a hold lasts before it is watched, and shorter than the first renewal.
const A_WHILE: Duration = Duration::from_millis(50);

/// Less than a message takes in any of these tests, whose nodes answer at once.
const AT_ONCE: Duration = Duration::from_millis(1);

fn client(nodes: &[EmbeddedNode], builder: LocksBuilder) -> Locks {
    let nodes = nodes.iter().cloned();
    builder.trust_fresh_nodes().on_nodes(nodes).unwrap()
}

/// Returns how long after `remove` the loss was told; `None` if it was not told before a renewal was due.
async fn told_after(lock: Lock, remove: impl AsyncFnOnce()) -> Option<Duration> {
    let guard = lock.acquire().await.unwrap();
    sleep(A_WHILE).await;
    assert!(guard.is_held());
    remove().await;
    let removed = Instant::now();
    let lost = timeout(Duration::from_secs(5), guard.lost()).await.ok()?;
    assert_eq!(lost, Lost::Taken);
    Some(removed.elapsed())
}

#[tokio::test(start_paused = true)]
async fn each_way_of_removal_is_told_at_once_with_a_watchdog_and_with_a_lease() {
    for number in [1, 3] {
        let nodes: Vec<EmbeddedNode> = (0..number).map(|_| EmbeddedNode::new()).collect();
        let (ours, theirs) = (
            client(&nodes, Locks::builder()),
            client(&nodes, Locks::builder()),
        );
        for lock in [
            ours.lock("a"),
            ours.lock("a").lease(Duration::from_secs(20)),
            ours.write("a"),
            ours.read("a"),
            ours.all(["a", "b"]),
        ] {
            let freed = told_after(lock.clone(), async || {
                theirs.force_release("a").await.unwrap();
            });
            assert!(freed.await.unwrap() <= AT_ONCE, "{lock:?} on {number}");
            let flushed = told_after(lock.clone(), async || {
                nodes.iter().for_each(EmbeddedNode::flush)
            });
            assert!(flushed.await.unwrap() <= AT_ONCE, "{lock:?} on {number}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_another_owner_got_at_once_is_told() {
    let node = EmbeddedNode::new();
    let (ours, theirs) = (
        Locks::on_node(node.clone()).unwrap(),
        Locks::on_node(node).unwrap(),
    );
    let told = told_after(ours.lock("a"), async || {
        theirs.force_release("a").await.unwrap();
        theirs.lock("a").acquire().await.unwrap().leak();
    });
    assert!(told.await.unwrap() <= AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_loss_on_a_minority_ends_nothing_and_the_member_joins_again() {
    let nodes: Vec<EmbeddedNode> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = client(&nodes, Locks::builder());
    let guard = locks.lock("a").acquire().await.unwrap();
    sleep(A_WHILE).await;
    let first = nodes.first().unwrap();
    let before = first.executed();
    first.flush();
    sleep(AT_ONCE).await;
    assert!(guard.is_held());
    // One question, and not one after another.
    assert_eq!(first.executed(), before + 1);
    sleep(Duration::from_secs(90)).await;
    assert_eq!(first.names().len(), 1);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_the_watch_a_loss_is_told_by_the_next_renewal() {
    let nodes = [EmbeddedNode::new()];
    let locks = client(&nodes, Locks::builder().watch_claims(false));
    let told = told_after(locks.lock("a"), async || {
        nodes.iter().for_each(EmbeddedNode::flush)
    });
    assert_eq!(told.await, None);
}

#[tokio::test(start_paused = true)]
async fn a_question_renews_no_lease() {
    let nodes = [EmbeddedNode::new()];
    let (ours, theirs) = (
        client(&nodes, Locks::builder()),
        client(&nodes, Locks::builder()),
    );
    let guard = ours.lock("a").lease(400 * MS).acquire().await.unwrap();
    sleep(A_WHILE).await;
    let until = guard.validity();
    // Whatever others do with the name, the claim is there.
    assert!(theirs.lock("a").try_acquire().await.unwrap().is_none());
    theirs.inspect("a").await.unwrap();
    assert_eq!(guard.validity(), until);
    sleep(400 * MS).await;
    assert!(theirs.lock("a").try_acquire().await.unwrap().is_some());
}
