//! Two guards are held: a waiter gets a hold by the settings of a client that its lock does not name.

use quorlock::{EmbeddedNode, Guard, Lock, Locks, NodeTrust};
use tokio::time::Instant;

use super::{S, wait_in_line};

fn brief(node: &EmbeddedNode) -> Locks {
    let builder = Locks::builder().longest_lease(S(2)).watchdog_lease(S(2));
    let builder = builder.node_trust(NodeTrust::Watched);
    builder.on_node(node.clone()).unwrap()
}

/// The node forgets everything after the hold was extended: another client that trusts it again must not be granted what the
/// hold still believes to have.
async fn assert_believes_no_longer_than_brief_clients(node: &EmbeddedNode, held: &Guard) {
    let extended = held.extend(S(30)).await;
    node.kill();
    node.restart();
    let began = Instant::now();
    let other = brief(node);
    let won = other.lock("b").wait(S(60)).acquire().await.unwrap();
    assert!(won.is_held());
    assert!(
        !held.is_held(),
        "extended: {extended:?}; another won after {:?}, and the first says held for {:?} more",
        began.elapsed(),
        held.validity()
    );
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
    let [leader, follower] = wait_in_line([before, both]).await;
    blocker.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let held = follower.await.unwrap().unwrap();
    assert_believes_no_longer_than_brief_clients(&node, &held).await;
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
    assert_believes_no_longer_than_brief_clients(&node, &held).await;
}
