//! Two guards are held: a waiter gets a hold by the settings of a client that its lock does not name.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{EmbeddedNode, Lock, Locks, NodeTrust};
use tokio::time::{Instant, sleep};

const S: fn(u64) -> Duration = Duration::from_secs;

fn brief(node: &EmbeddedNode) -> Locks {
    let builder = Locks::builder().longest_lease(S(2)).watchdog_lease(S(2));
    let builder = builder.node_trust(NodeTrust::Watched);
    builder.on_node(node.clone()).unwrap()
}

/// A node forgets everything, and is trusted again after its longest lease, 2 s.
#[tokio::test(start_paused = true)]
async fn a_waiter_extends_no_further_than_its_own_clients_say() {
    let node = EmbeddedNode::new();
    let first = Locks::on_node(EmbeddedNode::new()).unwrap();
    // A client of the same node that watches nothing: of one server the default.
    let unwatched = Locks::on_node(node.clone()).unwrap();
    let watched = brief(&node);
    let blocker = first.lock("a").acquire().await.unwrap();
    let before = Lock::all([first.lock("a"), unwatched.lock("b")])
        .unwrap()
        .lease(S(2));
    let both = Lock::all([first.lock("a"), watched.lock("b")])
        .unwrap()
        .lease(S(2));
    let leader = tokio::spawn(async move { before.acquire().await });
    sleep(S(1)).await;
    let follower = tokio::spawn(async move { both.acquire().await });
    sleep(S(1)).await;
    blocker.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let held = follower.await.unwrap().unwrap();
    let extended = held.extend(S(30)).await;
    node.kill();
    node.restart();
    let began = Instant::now();
    let other = brief(&node);
    let won = other.lock("b").wait(S(60)).acquire().await.unwrap();
    assert!(won.is_held());
    assert!(
        !held.is_held(),
        "extended: {extended:?}; another won after {:?}, and the first says held for {:?} more",
        began.elapsed(),
        held.validity()
    );
}

/// The same name on the same node through both clients: the part of the second is dropped, and with it what it says.
#[tokio::test(start_paused = true)]
async fn a_merged_part_extends_no_further_than_both_clients_say() {
    let node = EmbeddedNode::new();
    let unwatched = Locks::on_node(node.clone()).unwrap();
    let watched = brief(&node);
    let both = Lock::all([unwatched.lock("b"), watched.lock("b")])
        .unwrap()
        .lease(S(2));
    let held = both.acquire().await.unwrap();
    let extended = held.extend(S(30)).await;
    node.kill();
    node.restart();
    let began = Instant::now();
    let other = brief(&node);
    let won = other.lock("b").wait(S(60)).acquire().await.unwrap();
    assert!(won.is_held());
    assert!(
        !held.is_held(),
        "extended: {extended:?}; another won after {:?}, and the first says held for {:?} more",
        began.elapsed(),
        held.validity()
    );
}
