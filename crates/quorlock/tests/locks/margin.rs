//! Leases that do not depend on a node's clock: margins, claim versions, and take-over.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::operate::Ttl;
use quorlock::{EmbeddedNode, Locks, LocksBuilder, Name};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(10);
/// The lease and its drift allowance.
const OVER: Duration = Duration::from_millis(10_102);
const SOON: Duration = Duration::from_millis(500);

fn nodes(many: usize) -> Vec<EmbeddedNode> {
    (0..many).map(|_| EmbeddedNode::new()).collect()
}

fn client(nodes: &[EmbeddedNode], builder: LocksBuilder) -> Locks {
    let builder = builder.trust_fresh_nodes();
    builder.on_nodes(nodes.to_vec()).unwrap()
}

fn name() -> Name {
    Name::new("a").unwrap()
}

fn left(node: &EmbeddedNode) -> Duration {
    match node.held(&name()) {
        Some((_, Ttl::Millis(millis))) => Duration::from_millis(millis),
        other => panic!("{other:?}"),
    }
}

/// The holder dies at once. A waiter that arrives then gets the lock one lease later, though the nodes would keep the
/// claim for another minute.
#[tokio::test(start_paused = true)]
async fn a_dead_holder_is_replaced_one_lease_after_its_last_beat_was_seen() {
    let nodes = nodes(3);
    let dead = client(&nodes, Locks::builder());
    let guard = dead.lock("a").lease(LEASE).acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.leak();
    let waiting = client(&nodes, Locks::builder()).lock("a");
    let start = Instant::now();
    let guard = waiting.acquire().await.unwrap();
    let waited = start.elapsed();
    assert!(OVER <= waited && waited < OVER + SOON, "{waited:?}");
    assert!(token < guard.fencing_token());
    for node in &nodes {
        let (held, _) = node.held(&name()).unwrap();
        assert!(matches!(held, Held::Plain { owner, .. } if owner == guard.owner_id()));
    }
}

/// A `try_acquire` observes the claim, too.
#[tokio::test(start_paused = true)]
async fn whoever_looked_before_replaces_the_claim_with_the_first_try_after_the_lease() {
    let nodes = nodes(3);
    client(&nodes, Locks::builder())
        .lock("a")
        .lease(LEASE)
        .acquire()
        .await
        .unwrap()
        .leak();
    let other = client(&nodes, Locks::builder()).lock("a");
    assert!(other.try_acquire().await.unwrap().is_none());
    sleep(OVER - Duration::from_millis(1)).await;
    assert!(other.try_acquire().await.unwrap().is_none());
    sleep(Duration::from_millis(1)).await;
    assert!(other.try_acquire().await.unwrap().is_some());
}

/// A node's refusal of another name, or a temporary one, does not affect its other observations.
#[tokio::test(start_paused = true)]
async fn a_refusal_of_another_name_does_not_put_off_a_take_over() {
    let nodes = nodes(3);
    for node in &nodes {
        node.put(&Name::new("b").unwrap(), Held::NotALock, None);
    }
    let dead = client(&nodes, Locks::builder());
    let dead = dead.lock("a").lease(LEASE).acquire().await.unwrap();
    dead.leak();
    let other = client(&nodes, Locks::builder());
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    sleep(LEASE / 2).await;
    assert!(other.lock("b").try_acquire().await.is_err());
    sleep(OVER - LEASE / 2).await;
    assert!(other.lock("a").try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_renews_is_never_replaced() {
    let nodes = nodes(3);
    let holder = client(&nodes, Locks::builder().watchdog_lease(LEASE));
    let guard = holder.lock("a").acquire().await.unwrap();
    let other = client(&nodes, Locks::builder()).lock("a");
    let waited = other.clone().wait(20 * LEASE).acquire().await;
    assert!(waited.is_err());
    assert!(guard.is_held());
    guard.release().await.unwrap();
}

/// A claim without a claim version belongs to another kind of client, or to one without a margin: contenders wait for
/// its TTL.
#[tokio::test(start_paused = true)]
async fn a_claim_without_a_beat_is_not_replaced() {
    let nodes = nodes(3);
    let plain = client(&nodes, Locks::builder().clock_margin(Duration::ZERO));
    let guard = plain.lock("a").lease(LEASE).acquire().await.unwrap();
    for node in &nodes {
        assert!(left(node) <= LEASE);
        assert_eq!(node.version(&name()), None);
    }
    guard.leak();
    let start = Instant::now();
    let other = client(&nodes, Locks::builder()).lock("a");
    drop(other.acquire().await.unwrap());
    assert!(LEASE < start.elapsed() && start.elapsed() < LEASE + SOON);
}

#[tokio::test(start_paused = true)]
async fn nodes_keep_a_claim_for_its_lease_and_the_margin_and_nothing_stays_behind() {
    let nodes = nodes(3);
    let margin = Duration::from_secs(7);
    let locks = client(&nodes, Locks::builder().clock_margin(margin));
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    assert!(guard.validity() <= LEASE);
    assert_eq!(left(&nodes[0]), LEASE + margin);
    let again = guard.reenter().await.unwrap();
    guard.extend(2 * LEASE).await.unwrap();
    assert_eq!(left(&nodes[0]), 2 * LEASE + margin);
    let version = nodes[0].version(&name()).unwrap();
    assert_eq!(
        (version.owner, version.lease_millis),
        (guard.owner_id(), 20_000)
    );
    again.release().await.unwrap();
    guard.release().await.unwrap();
    for node in &nodes {
        assert_eq!(node.held(&name()), None);
        assert_eq!(node.version(&name()), None);
    }
}

#[tokio::test(start_paused = true)]
async fn on_one_node_there_is_no_beat_unless_a_margin_is_asked_for() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    assert_eq!(node.version(&name()), None);
    assert_eq!(left(&node), LEASE);
    guard.release().await.unwrap();
    let builder = Locks::builder().clock_margin(LEASE);
    let locks = builder.on_node(node.clone()).unwrap();
    locks.lock("a").lease(LEASE).acquire().await.unwrap().leak();
    assert!(node.version(&name()).is_some());
    let other = Locks::builder().clock_margin(LEASE).on_node(node).unwrap();
    let start = Instant::now();
    drop(other.lock("a").acquire().await.unwrap());
    assert!(OVER <= start.elapsed() && start.elapsed() < OVER + SOON);
}

/// Token counters of unused names stayed for ever, and after an operator deleted them, tokens began again at 1. Here
/// they expire, and later tokens are larger nevertheless.
#[tokio::test(start_paused = true)]
async fn story_29_unused_token_counters_expire_and_tokens_go_on_growing() {
    let nodes = nodes(3);
    let locks = client(&nodes, Locks::builder());
    let mut last = None;
    for _ in 0..3 {
        let guard = locks.lock("a").acquire().await.unwrap();
        let token = Some(guard.fencing_token());
        assert!(last < token);
        last = token;
        guard.release().await.unwrap();
        assert!(
            nodes
                .iter()
                .all(|node| node.stored_token(&name()).is_some())
        );
        sleep(Duration::from_secs(24 * 60 * 60 + 1)).await;
        assert!(
            nodes
                .iter()
                .all(|node| node.stored_token(&name()).is_none())
        );
    }
}

/// A process dies with more names than a client once remembered: all of them are free one lease later.
#[tokio::test(start_paused = true)]
async fn thousands_of_names_of_a_dead_process_are_taken_over_one_lease_later() {
    const NAMES: usize = 5_000;
    let nodes = nodes(3);
    let dead = client(&nodes, Locks::builder());
    for number in 0..NAMES {
        let lock = dead.lock(format!("orders/{number}")).lease(3 * LEASE);
        lock.acquire().await.unwrap().leak();
    }
    let other = client(&nodes, Locks::builder());
    let start = Instant::now();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..NAMES {
        let lock = other.lock(format!("orders/{number}")).lease(LEASE);
        waiting.spawn(async move {
            lock.acquire().await.unwrap().leak();
            start.elapsed()
        });
    }
    let waited = waiting.join_all().await;
    let last = waited.into_iter().max().unwrap();
    assert!(last < 3 * OVER + 4 * SOON, "{last:?}");
}
