//! Locks over several clients: the settings of each apply to its own members, whichever client drives the lock.

use std::time::Duration;

use quorlock::errors::LeaseSource;
use quorlock::{
    AcquireError, ConfigError, ConfirmError, EmbeddedNode, Locks, LocksBuilder, Lost, Name,
};
use tokio::time::{Instant, sleep};

use super::S;

fn nodes(many: usize) -> Vec<EmbeddedNode> {
    (0..many).map(|_| EmbeddedNode::new()).collect()
}

fn alone(builder: LocksBuilder) -> Locks {
    builder.on_node(EmbeddedNode::new()).unwrap()
}

fn brief() -> LocksBuilder {
    Locks::builder().longest_lease(S(2)).watchdog_lease(S(2))
}

/// Two of three nodes lose everything, and are trusted again after their longest lease, 2 s. A holder that had
/// extended to the first client's longest lease would rely on its lock for another half minute.
#[tokio::test(start_paused = true)]
async fn no_lease_is_longer_than_the_longest_of_any_client() {
    let nodes = nodes(3);
    let first = alone(Locks::builder());
    let second = brief().trust_fresh_nodes();
    let second = second.on_nodes(nodes.clone()).unwrap();
    let both = first.lock("a").and([second.lock("b")]);
    let held = both.clone().lease(S(2)).acquire().await.unwrap();
    let extended = held.extend(S(30)).await;
    for node in &nodes[..2] {
        node.kill();
        node.restart();
    }
    let other = brief().on_nodes(nodes).unwrap();
    let began = Instant::now();
    let won = other.lock("b").wait(S(60)).acquire().await.unwrap();
    assert!(won.is_held());
    assert!(
        !held.is_held(),
        "another won after {:?}, and the first says held for {:?} more",
        began.elapsed(),
        held.validity()
    );
    let too_long = |of| ConfigError::LeaseTooLong {
        of,
        lease: S(30),
        longest: S(2),
    };
    let error = too_long(LeaseSource::Lock);
    assert_eq!(extended, Err(ConfirmError::Config(error)));
    // The watchdog's lease is that of the first client.
    let error = too_long(LeaseSource::WatchdogLease);
    assert_eq!(
        both.acquire().await.unwrap_err(),
        AcquireError::Config(error)
    );
}

/// Leases are rounded up to whole milliseconds. The longest lease itself is still allowed.
#[tokio::test(start_paused = true)]
async fn a_lease_of_a_fraction_of_a_millisecond_may_be_the_longest() {
    let odd = Duration::from_micros(60_001);
    let builder = Locks::builder().longest_lease(odd).max_hold(odd);
    let locks = alone(builder.watchdog_lease(odd));
    let guard = locks.lock("a").lease(odd).acquire().await.unwrap();
    guard.extend(odd).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_hold_lasts_longer_than_any_client_says() {
    let first = alone(Locks::builder());
    let second = alone(Locks::builder().max_hold(S(40)));
    let both = first.lock("a").and([second.lock("b")]);
    let held = both.acquire().await.unwrap();
    let began = Instant::now();
    assert_eq!(held.lost().await, Lost::Expired);
    assert!(began.elapsed() <= S(40), "{:?}", began.elapsed());
}

/// The first client's counters expire after a day, the second's never, as Redisson's fenced lock requires. A grant,
/// renewals and an extension use them.
#[tokio::test(start_paused = true)]
async fn token_counters_are_kept_for_as_long_as_their_own_client_says() {
    let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
    let first = Locks::on_node(a.clone()).unwrap();
    let second = Locks::builder().token_retention(None);
    let second = second.on_node(b.clone()).unwrap();
    let both = first.lock("a").and([second.lock("b")]);
    let held = both.acquire().await.unwrap();
    sleep(S(60)).await;
    held.extend(S(40)).await.unwrap();
    held.release().await.unwrap();
    sleep(S(3 * 24 * 60 * 60)).await;
    assert_eq!(a.stored_token(&Name::new("a").unwrap()), None);
    assert!(b.stored_token(&Name::new("b").unwrap()).is_some());
}

/// Either client of a lock is closed: the hold ends, and its claims are released on all nodes.
#[tokio::test(start_paused = true)]
async fn a_closed_client_ends_the_holds_that_it_has_a_part_in() {
    for closed in [0, 1] {
        let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
        let clients = [&a, &b].map(|node| Locks::on_node(node.clone()).unwrap());
        let both = clients[0].lock("a").and([clients[1].lock("b")]);
        let held = both.acquire().await.unwrap();
        let own = clients[1 - closed].lock("own").acquire().await.unwrap();
        clients[closed].close().await;
        assert!(!held.is_held(), "client {closed}");
        assert_eq!(held.lost().await, Lost::Closed);
        for node in [&a, &b] {
            assert!(!node.names().iter().any(|name| name.to_str() != Some("own")));
        }
        // The other client keeps its own locks.
        assert!(own.is_held());
        assert_eq!(both.acquire().await.unwrap_err(), AcquireError::Closed);
    }
}

/// The same for an acquisition that waits, and for a try in progress.
#[tokio::test(start_paused = true)]
async fn a_closed_client_ends_the_acquisitions_that_it_has_a_part_in() {
    let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
    let first = Locks::on_node(a.clone()).unwrap();
    let second = Locks::on_node(b.clone()).unwrap();
    let other = Locks::on_node(a.clone()).unwrap();
    let held = other.lock("a").acquire().await.unwrap();
    let both = first.lock("a").and([second.lock("b")]);
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let both = both.clone();
            tokio::spawn(async move { both.acquire().await.map(drop) })
        })
        .collect();
    sleep(S(1)).await;
    let began = Instant::now();
    second.close().await;
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Err(AcquireError::Closed));
    }
    assert!(began.elapsed() < S(1), "{:?}", began.elapsed());
    assert!(held.is_held());
    assert_eq!(b.names(), []);
}

/// Only the lock refers to the second client. Its nodes are watched nevertheless.
#[tokio::test(start_paused = true)]
async fn a_lock_keeps_the_clients_of_its_members() {
    let first = alone(Locks::builder());
    let second = brief().on_nodes(nodes(3)).unwrap();
    let both = first.lock("a").and([second.lock("b")]);
    drop(second);
    let both = both.lease(S(2)).wait(S(10));
    assert!(both.acquire().await.unwrap().is_held());
}
