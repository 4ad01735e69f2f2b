//! Which votes count: those of nodes that were watched since they started.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, Locks, LocksBuilder, NodeTrust, Persistence, Why};
use tokio::time::Instant;

const LONGEST: Duration = Duration::from_secs(60);
/// The longest lease and its drift allowance.
const WATCH: Duration = Duration::from_millis(60_602);
const SOON: Duration = Duration::from_secs(1);

fn nodes(many: usize) -> Vec<EmbeddedNode> {
    (0..many).map(|_| EmbeddedNode::new()).collect()
}

fn client(nodes: &[EmbeddedNode], builder: LocksBuilder) -> Locks {
    builder.on_nodes(nodes.to_vec()).unwrap()
}

/// Writes confirmed markers, as the very first client of a deployment may.
async fn confirm(nodes: &[EmbeddedNode]) {
    let first = client(nodes, Locks::builder().trust_fresh_nodes());
    first
        .lock("first")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    first.close().await;
}

/// "A lock on five nodes was held by two at once after one node was restarted": the node restarts empty, and forms a
/// majority with the two nodes that the holder does not have.
#[tokio::test(start_paused = true)]
async fn story_20_a_node_that_comes_back_empty_does_not_give_the_lock_away() {
    let nodes = nodes(5);
    confirm(&nodes).await;
    nodes[3].kill();
    nodes[4].kill();
    let alice = client(&nodes, Locks::builder());
    let guard = alice.lock("a").acquire().await.unwrap(); // on 0, 1 and 2
    nodes[3].restart();
    nodes[4].restart();
    nodes[0].kill();
    nodes[0].restart();
    let bob = client(&nodes, Locks::builder());
    assert!(!matches!(bob.lock("a").try_acquire().await, Ok(Some(_))));
    assert!(guard.is_held());
    // Only the markers prevent it: a client that ignores them gets the lock.
    let careless = client(&nodes, Locks::builder().node_trust(NodeTrust::Unwatched));
    assert!(matches!(
        careless.lock("a").try_acquire().await,
        Ok(Some(_))
    ));
    assert!(guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn new_nodes_grant_their_first_lock_after_one_longest_lease() {
    let nodes = nodes(3);
    let locks = client(&nodes, Locks::builder());
    let start = Instant::now();
    let guard = locks.lock("a").acquire().await.unwrap();
    let waited = start.elapsed();
    assert!(WATCH <= waited && waited < WATCH + SOON, "{waited:?}");
    guard.release().await.unwrap();
    // Every other client trusts the nodes at once.
    let other = client(&nodes, Locks::builder());
    let start = Instant::now();
    other
        .lock("b")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(start.elapsed() < SOON);
}

#[tokio::test(start_paused = true)]
async fn whoever_knows_that_the_nodes_are_new_does_not_wait() {
    let nodes = nodes(3);
    let locks = client(&nodes, Locks::builder().trust_fresh_nodes());
    let guard = locks.lock("a").try_acquire().await.unwrap();
    assert!(guard.is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_only_tries_is_told_who_is_quarantined_and_for_how_long() {
    let nodes = nodes(3);
    let locks = client(&nodes, Locks::builder());
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes: reports, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(reports.len(), 3);
    let quarantine = reports[0].quarantine.unwrap();
    assert_eq!(
        (quarantine.why, quarantine.left),
        (Why::Watched, Some(WATCH))
    );
    assert!(error.to_string().contains("60.6 s more"), "{error}");
    let inspection = locks.inspect("a").await.unwrap();
    assert!(
        inspection
            .nodes
            .iter()
            .all(|node| node.quarantine.is_some())
    );
    assert!(
        inspection.to_string().contains("quarantined"),
        "{inspection}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_looks_without_having_acquired_anything_sees_the_quarantine_too() {
    let nodes = nodes(3);
    confirm(&nodes).await;
    nodes[1].kill();
    nodes[1].restart();
    let inspection = client(&nodes, Locks::builder()).inspect("a").await.unwrap();
    let why: Vec<_> = inspection
        .nodes
        .iter()
        .map(|node| node.quarantine.map(|quarantine| quarantine.why))
        .collect();
    assert_eq!(why, [None, Some(Why::Missing), None]);
}

/// A rolling restart takes one longest lease per node. Without these pauses the quorum is lost for that long, and
/// nothing else.
#[tokio::test(start_paused = true)]
async fn restarts_one_after_the_other_are_waited_out() {
    let nodes = nodes(3);
    confirm(&nodes).await;
    let locks = client(&nodes, Locks::builder());
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    for node in &nodes[..2] {
        node.kill();
        node.restart();
    }
    let start = Instant::now();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let waited = start.elapsed();
    assert!(WATCH <= waited && waited < WATCH + 5 * SOON, "{waited:?}");
}

/// The first lock of the morning: the nodes have no marker, and the client was idle for one longest lease.
#[tokio::test(start_paused = true)]
async fn new_nodes_are_watched_from_the_connection_on_and_not_from_the_first_lock_on() {
    let nodes = nodes(3);
    let locks = client(&nodes, Locks::builder());
    tokio::time::sleep(WATCH + SOON).await;
    let guard = locks.lock("a").try_acquire().await.unwrap();
    assert!(guard.is_some());
}

/// Nodes are restarted as the page "Restart nodes, and back them up" says, with one longest lease between two of them, and no client uses a lock.
#[tokio::test(start_paused = true)]
async fn an_idle_client_watches_the_nodes_that_restart() {
    let nodes = nodes(3);
    confirm(&nodes).await;
    let locks = client(&nodes, Locks::builder());
    for node in &nodes {
        tokio::time::sleep(WATCH).await;
        node.kill();
        node.restart();
    }
    // An embedded node cannot report its restart, so a probe notices it.
    tokio::time::sleep(WATCH + LONGEST / 2 + SOON).await;
    let guard = locks.lock("a").try_acquire().await.unwrap();
    assert!(guard.is_some());
    let inspection = locks.inspect("a").await.unwrap();
    let mut quarantines = inspection.nodes.iter().map(|node| node.quarantine);
    assert!(
        quarantines.all(|quarantine| quarantine.is_none()),
        "{inspection}"
    );
}

/// The only request that finds a restarted node is one that looks, as that of a client which trusted the node does.
#[tokio::test(start_paused = true)]
async fn a_node_whose_restart_one_request_has_shown_votes_again_without_another() {
    let nodes = nodes(3);
    confirm(&nodes).await;
    let locks = client(&nodes, Locks::builder());
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    nodes[0].kill();
    nodes[0].restart();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    tokio::time::sleep(WATCH + SOON).await;
    nodes[1].kill();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_was_closed_or_dropped_probes_no_more() {
    let nodes = nodes(3);
    for is_closed in [true, false] {
        let locks = client(&nodes, Locks::builder());
        if is_closed {
            locks.close().await;
        } else {
            drop(locks);
        }
        tokio::time::sleep(SOON).await;
        nodes.iter().for_each(EmbeddedNode::flush);
        tokio::time::sleep(2 * WATCH).await;
        assert!(nodes.iter().all(|node| node.marker().is_none()));
    }
}

/// After a restart the claim is still the holder's: it is already there, so the node has not lost it.
#[tokio::test(start_paused = true)]
async fn a_hold_outlives_the_restart_of_every_node_that_kept_its_data() {
    let nodes: Vec<_> = (0..3)
        .map(|_| EmbeddedNode::new().persistence(Persistence::EveryWrite))
        .collect();
    confirm(&nodes).await;
    let locks = client(&nodes, Locks::builder());
    let guard = locks.lock("a").acquire().await.unwrap();
    for node in &nodes {
        node.kill();
        node.restart();
    }
    tokio::time::sleep(2 * LONGEST).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lock_on_one_node_writes_no_marker_unless_it_is_asked_to() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    locks
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert_eq!(node.marker(), None);
    let watched = Locks::builder().node_trust(NodeTrust::Watched);
    let watched = watched.on_node(node.clone()).unwrap();
    let start = Instant::now();
    watched
        .lock("a")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(WATCH <= start.elapsed());
    assert!(node.marker().is_some());
}

fn durable(many: usize) -> Vec<EmbeddedNode> {
    let node = || EmbeddedNode::new().persistence(Persistence::EveryWrite);
    std::iter::repeat_with(node).take(many).collect()
}

/// How long a client with this trust waits for a free lock, on nodes to which `what` happened while it knew them; and
/// how long a client waits that is made afterwards.
async fn waits(nodes: &[EmbeddedNode], trust: NodeTrust, what: impl Fn(&EmbeddedNode)) -> Duration {
    confirm(nodes).await;
    let client = || client(nodes, Locks::builder().node_trust(trust));
    let known = client();
    let guard = known.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    nodes.iter().for_each(what);
    let start = Instant::now();
    for locks in [known, client()] {
        let guard = locks.lock("a").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    start.elapsed()
}

fn restart(node: &EmbeddedNode) {
    node.kill();
    node.restart();
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_lost_nothing_costs_nothing_where_that_is_asserted() {
    let asserted = waits(&durable(3), NodeTrust::AssertedDurable, restart).await;
    assert!(asserted < SOON, "{asserted:?}");
    let watched = waits(&durable(3), NodeTrust::Watched, restart).await;
    assert!(WATCH <= watched, "{watched:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_without_its_marker_is_quarantined_whatever_is_asserted() {
    let restarted = waits(&nodes(3), NodeTrust::AssertedDurable, restart).await;
    assert!(WATCH <= restarted, "it lost everything: {restarted:?}");
    let flushed = waits(&durable(3), NodeTrust::AssertedDurable, EmbeddedNode::flush).await;
    assert!(WATCH <= flushed, "{flushed:?}");
}

/// A claim that a durable node still has is in the way, and one that it has released is not.
#[tokio::test(start_paused = true)]
async fn durable_nodes_that_all_restart_keep_the_holder_and_refuse_the_others() {
    let nodes = durable(3);
    confirm(&nodes).await;
    let client = || {
        client(
            &nodes,
            Locks::builder().node_trust(NodeTrust::AssertedDurable),
        )
    };
    let (alice, bob) = (client(), client());
    let guard = alice.lock("a").acquire().await.unwrap();
    nodes.iter().for_each(restart);
    assert!(bob.lock("a").try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(bob.lock("a").try_acquire().await.unwrap().is_some());
}

/// A node whose `master_replid` has changed cannot prove that it was not a replica of another server in between.
#[tokio::test(start_paused = true)]
async fn a_backup_without_a_backlog_looks_like_a_restart_and_costs_one_longest_lease() {
    let all = waits(&durable(3), NodeTrust::Watched, EmbeddedNode::back_up).await;
    assert!(WATCH <= all && all < WATCH + 5 * SOON, "{all:?}");
    let nodes = durable(3);
    let first = nodes[0].clone();
    let one = waits(&nodes, NodeTrust::Watched, |node| {
        if node.process() == first.process() {
            node.back_up();
        }
    });
    assert!(one.await < SOON, "the others are a majority");
}
