//! Locks over several clients that have equal nodes and names, and different settings.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, Lock, Locks, Lost};
use tokio::time::{Instant, sleep};

const S: fn(u64) -> Duration = Duration::from_secs;

/// Two clients of one node, of which the second allows no hold longer than 40 s. Each has a part in a lock with the
/// same first client: the waiter for the second lock stands behind that for the first, and gets a hold of the first.
#[tokio::test(start_paused = true)]
async fn a_waiter_gets_a_hold_of_its_own_clients() {
    let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
    let first = Locks::on_node(a).unwrap();
    let free = Locks::on_node(b.clone()).unwrap();
    let bound = Locks::builder().max_hold(S(40)).on_node(b.clone()).unwrap();
    let other = Locks::on_node(b).unwrap();
    let with_free = Lock::all([first.lock("a"), free.lock("b")]).unwrap();
    let with_bound = Lock::all([first.lock("a"), bound.lock("b")]).unwrap();
    let held = other.lock("b").acquire().await.unwrap();
    let leader = tokio::spawn(async move { with_free.acquire().await });
    sleep(S(1)).await;
    let follower = tokio::spawn(async move { with_bound.acquire().await });
    sleep(S(1)).await;
    held.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let guard = follower.await.unwrap().unwrap();
    let began = Instant::now();
    let lost = tokio::time::timeout(S(300), guard.lost()).await;
    assert_eq!(
        lost,
        Ok(Lost::Expired),
        "held for {:?}, and for {:?} more",
        began.elapsed(),
        guard.validity()
    );
    assert!(began.elapsed() <= S(40));
}

/// The same, and the client of the leader's lock is closed: the follower's clients are open.
#[tokio::test(start_paused = true)]
async fn a_closed_client_ends_no_acquisition_that_it_has_no_part_in() {
    let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
    let first = Locks::on_node(a).unwrap();
    let one = Locks::on_node(b.clone()).unwrap();
    let two = Locks::on_node(b.clone()).unwrap();
    let other = Locks::on_node(b).unwrap();
    let with_one = Lock::all([first.lock("a"), one.lock("b")]).unwrap();
    let with_two = Lock::all([first.lock("a"), two.lock("b")]).unwrap();
    let held = other.lock("b").acquire().await.unwrap();
    let leader = tokio::spawn(async move { with_one.acquire().await.map(drop) });
    sleep(S(1)).await;
    let follower = tokio::spawn(async move { with_two.acquire().await });
    sleep(S(1)).await;
    one.close().await;
    assert_eq!(leader.await.unwrap(), Err(AcquireError::Closed));
    sleep(S(1)).await;
    held.release().await.unwrap();
    let won = follower.await.unwrap();
    assert!(won.is_ok(), "{won:?}");
}

/// And a hold that a closed client has a part in goes on.
#[tokio::test(start_paused = true)]
async fn a_closed_client_ends_a_hold_that_was_won_behind_another() {
    let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
    let first = Locks::on_node(a).unwrap();
    let one = Locks::on_node(b.clone()).unwrap();
    let two = Locks::on_node(b.clone()).unwrap();
    let other = Locks::on_node(b).unwrap();
    let with_one = Lock::all([first.lock("a"), one.lock("b")]).unwrap();
    let with_two = Lock::all([first.lock("a"), two.lock("b")]).unwrap();
    let held = other.lock("b").acquire().await.unwrap();
    let leader = tokio::spawn(async move { with_one.acquire().await });
    sleep(S(1)).await;
    let follower = tokio::spawn(async move { with_two.acquire().await });
    sleep(S(1)).await;
    held.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let guard = follower.await.unwrap().unwrap();
    two.close().await;
    assert!(!guard.is_held(), "held for {:?} more", guard.validity());
}

/// Duplicates are merged by address: the settings of the second client are dropped with its part.
#[tokio::test(start_paused = true)]
async fn a_merged_part_keeps_the_settings_of_both_clients() {
    let node = EmbeddedNode::new();
    let first = Locks::on_node(node.clone()).unwrap();
    let second = Locks::builder().max_hold(S(40)).on_node(node).unwrap();
    let both = Lock::all([first.lock("a"), second.lock("a")]).unwrap();
    let guard = both.acquire().await.unwrap();
    let lost = tokio::time::timeout(S(300), guard.lost()).await;
    assert_eq!(lost, Ok(Lost::Expired));
}
