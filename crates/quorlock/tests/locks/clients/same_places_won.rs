//! Two guards of one name: a waiter must not get a hold with the settings of a client that its lock does not include.

use quorlock::{EmbeddedNode, Guard, Locks, NodeTrust};
use tokio::time::Instant;

use super::{S, wait_in_line};

fn brief(node: &EmbeddedNode) -> Locks {
    let builder = Locks::builder().longest_lease(S(2)).watchdog_lease(S(2));
    let builder = builder.node_trust(NodeTrust::Watched);
    builder.on_node(node.clone()).unwrap()
}

/// The node loses everything after the hold was extended. Another client that trusts the node again must not be
/// granted the name while the hold still relies on it.
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

/// A node loses everything, and is trusted again after its longest lease, 2 s.
#[tokio::test(start_paused = true)]
async fn a_waiter_extends_no_further_than_its_own_clients_say() {
    let node = EmbeddedNode::new();
    let first = Locks::on_node(EmbeddedNode::new()).unwrap();
    // A client of the same node that does not watch it, which is the default for one server.
    let unwatched = Locks::on_node(node.clone()).unwrap();
    let watched = brief(&node);
    let blocker = first.lock("a").acquire().await.unwrap();
    let before = first.lock("a").and([unwatched.lock("b")]).lease(S(2));
    let both = first.lock("a").and([watched.lock("b")]).lease(S(2));
    let [leader, follower] = wait_in_line([before, both]).await;
    blocker.release().await.unwrap();
    leader.await.unwrap().unwrap().release().await.unwrap();
    let held = follower.await.unwrap().unwrap();
    assert_believes_no_longer_than_brief_clients(&node, &held).await;
}

/// The same name on the same node through both clients: the group of the second is dropped, and its settings must
/// still apply.
#[tokio::test(start_paused = true)]
async fn a_merged_part_extends_no_further_than_both_clients_say() {
    let node = EmbeddedNode::new();
    let unwatched = Locks::on_node(node.clone()).unwrap();
    let watched = brief(&node);
    let both = unwatched.lock("b").and([watched.lock("b")]).lease(S(2));
    let held = both.acquire().await.unwrap();
    assert_believes_no_longer_than_brief_clients(&node, &held).await;
}
