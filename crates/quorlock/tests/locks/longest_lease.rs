//! A rolling deployment changes `longest_lease`: clients with the old and the new setting run at the same time.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, ConfigError, ConfirmError, EmbeddedNode, Locks, NodeTrust, Why};
use quorlock_core::marker::{Figures, MarkerState};
use tokio::time::{Instant, sleep};

const OLD: Duration = Duration::from_secs(60);
const NEW: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(100);
/// An old longest lease, its drift allowance, and the pauses of the requests before.
const RAISED: Duration = Duration::from_secs(62);

fn nodes(many: usize) -> Vec<EmbeddedNode> {
    (0..many).map(|_| EmbeddedNode::new()).collect()
}

/// The first client of a deployment.
fn first(nodes: &[EmbeddedNode], longest: Duration) -> Locks {
    let builder = Locks::builder().trust_fresh_nodes().longest_lease(longest);
    let builder = builder.node_trust(NodeTrust::Watched);
    builder.on_nodes(nodes.to_vec()).unwrap()
}

fn client(nodes: &[EmbeddedNode], longest: Duration) -> Locks {
    let builder = Locks::builder().longest_lease(longest);
    let builder = builder.node_trust(NodeTrust::Watched);
    builder.on_nodes(nodes.to_vec()).unwrap()
}

fn figures(nodes: &[EmbeddedNode]) -> Vec<Figures> {
    let markers = nodes.iter().map(|node| node.marker().unwrap());
    markers.map(|marker| marker.figures).collect()
}

fn same(longest: Duration, nodes: &[EmbeddedNode]) -> Vec<Figures> {
    let millis = u64::try_from(longest.as_millis()).unwrap();
    vec![Figures::same(millis); nodes.len()]
}

/// The case of the issue: an old pod holds a lock, and a new one with a longer setting locks at once, too.
#[tokio::test(start_paused = true)]
async fn a_longer_setting_locks_at_once_and_has_longer_leases_one_old_longest_lease_later() {
    for many in [1, 3, 5] {
        let nodes = nodes(many);
        let old = first(&nodes, OLD);
        let held = old.lock("job").acquire().await.unwrap();
        let new = client(&nodes, NEW);
        drop(new.lock("other").try_acquire().await.unwrap().unwrap());
        assert!(new.lock("job").try_acquire().await.unwrap().is_none());
        let began = Instant::now();
        let error = new.lock("a").lease(LONG).try_acquire().await.unwrap_err();
        let AcquireError::NoQuorum { nodes: reports, .. } = &error else {
            panic!("{error}")
        };
        assert!(!reports.is_empty());
        let whys = reports.iter().map(|it| it.quarantine.unwrap().why);
        assert!(whys.clone().all(|why| why == Why::Raising), "{error}");

        let long = new.lock("a").lease(LONG).wait(NEW).acquire().await;
        let long = long.unwrap();
        assert!(began.elapsed() < RAISED, "{:?}", began.elapsed());
        assert!(OLD < long.validity());
        assert!(held.is_held());
        held.extend(Duration::from_secs(30)).await.unwrap();
        drop(old.lock("b").try_acquire().await.unwrap().unwrap());
        sleep(Duration::from_secs(5)).await;
        assert_eq!(figures(&nodes), same(NEW, &nodes));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shorter_setting_locks_at_once_and_has_its_own_bound() {
    let nodes = nodes(3);
    let old = first(&nodes, NEW);
    let held = old.lock("job").lease(LONG).acquire().await.unwrap();
    let new = client(&nodes, OLD);
    drop(new.lock("a").lease(OLD).acquire().await.unwrap());
    assert!(new.lock("job").try_acquire().await.unwrap().is_none());
    let error = new.lock("a").lease(LONG).acquire().await.unwrap_err();
    let is_bounded = matches!(
        error,
        AcquireError::Config(ConfigError::LeaseTooLong { .. })
    );
    assert!(is_bounded, "{error}");
    assert!(held.is_held());
    assert_eq!(figures(&nodes), same(NEW, &nodes));
    // A node that forgets is watched for as long as the old clients' leases may last, also by the new ones. The old client must be gone:
    // it takes nodes without a marker for new ones.
    held.leak();
    drop(old);
    nodes[0].kill();
    nodes[0].restart();
    sleep(LONG).await;
    let state = nodes[0].marker().unwrap().state;
    assert_eq!(state, MarkerState::Observing);
}

/// Nodes do not check renewals, so the client has to.
#[tokio::test(start_paused = true)]
async fn a_hold_is_not_extended_for_longer_than_nodes_grant() {
    let nodes = nodes(3);
    let old = first(&nodes, OLD);
    drop(old.lock("a").acquire().await.unwrap());
    let new = client(&nodes, NEW);
    let held = new.lock("a").lease(OLD).acquire().await.unwrap();
    let error = held.extend(LONG).await.unwrap_err();
    let is_told = matches!(
        error,
        ConfirmError::Config(ConfigError::LeaseNotGranted { .. })
    );
    assert!(is_told, "{error}");
    held.extend(OLD).await.unwrap();
    sleep(RAISED / 2).await;
    held.extend(OLD).await.unwrap();
    sleep(RAISED / 2).await;
    held.extend(LONG).await.unwrap();
}

/// Node 2 is down, so that an old client without a connection to the others could still watch it for too short a time
/// later.
#[tokio::test(start_paused = true)]
async fn longer_leases_begin_only_when_every_node_knows() {
    let nodes = nodes(3);
    let old = first(&nodes, OLD);
    drop(old.lock("a").acquire().await.unwrap());
    nodes[2].pause();
    let new = client(&nodes, NEW);
    drop(new.lock("a").acquire().await.unwrap());
    let error = new.lock("a").lease(LONG).wait(2 * NEW).acquire().await;
    assert!(error.is_err());
    assert_eq!(figures(&nodes), same(OLD, &nodes));
    nodes[2].resume();
    let long = new.lock("a").lease(LONG).wait(2 * NEW).acquire().await;
    drop(long.unwrap());
}

/// A holds nodes 0 and 1 for 100 s. Node 0 restarts empty, and an old client that starts now hears nothing else: it
/// watches node 0 for 60 s only. Its lock needs another node, which shows that this was too short.
#[tokio::test(start_paused = true)]
async fn a_node_that_was_watched_for_too_short_a_time_is_not_counted_with_one_that_knows_better() {
    let nodes = nodes(3);
    let first = first(&nodes, NEW);
    drop(first.lock("first").acquire().await.unwrap());
    nodes[2].pause();
    let held = first.lock("a").lease(LONG).acquire().await.unwrap();
    let ends = Instant::now() + held.validity();
    // Its process is stopped from here on.
    held.leak();
    drop(first);
    nodes[2].resume();
    nodes[1].pause();
    nodes[2].pause();
    nodes[0].kill();
    nodes[0].restart();
    let ignorant = client(&nodes, OLD);
    sleep(OLD + Duration::from_secs(3)).await;
    assert_eq!(figures(&nodes[..1]), same(OLD, &nodes[..1]));
    let state = nodes[0].marker().unwrap().state;
    assert_eq!(
        state,
        MarkerState::Confirmed,
        "by a client that knows no better"
    );
    nodes[1].resume();
    nodes[2].resume();
    let lock = ignorant.lock("a").wait(Duration::from_secs(20));
    let won = lock.acquire().await;
    assert!(Instant::now() < ends && won.is_err(), "{won:?}");
    assert_eq!(
        figures(&nodes[..1]),
        same(NEW, &nodes[..1]),
        "watched again"
    );
}

/// A client in use sends no probes: it learns of each stage by an acquire, which has to count.
#[tokio::test(start_paused = true)]
async fn a_client_in_use_gets_its_locks_and_hand_overs_through_all_stages_of_a_raise() {
    let nodes = nodes(3);
    let old = first(&nodes, OLD);
    let adopting = client(&nodes, OLD);
    drop(old.lock("first").acquire().await.unwrap());
    let raising = client(&nodes, NEW);
    let began = Instant::now();
    while began.elapsed() < 2 * OLD {
        let held = old.lock("a").try_acquire().await.unwrap();
        let held = held.unwrap_or_else(|| panic!("{:?}", began.elapsed()));
        let ticket = held.hand_over().unwrap();
        let adopted = adopting.adopt(&ticket).await.unwrap().unwrap();
        adopted.release().await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(figures(&nodes), same(NEW, &nodes));
    drop(raising);
}

/// Nothing ends the wait for a node that stays down, so the wait for longer leases has the limit of other outages.
#[tokio::test(start_paused = true)]
async fn a_longer_lease_is_not_waited_for_without_end_while_a_node_is_down() {
    let nodes = nodes(3);
    let old = first(&nodes, OLD);
    drop(old.lock("a").acquire().await.unwrap());
    nodes[2].pause();
    let new = client(&nodes, NEW);
    let began = Instant::now();
    let error = new.lock("a").lease(LONG).acquire().await.unwrap_err();
    assert!(began.elapsed() < OLD, "{:?}", began.elapsed());
    let AcquireError::NoQuorum { nodes: reports, .. } = &error else {
        panic!("{error}")
    };
    let raising = |why| matches!(why, Some(Why::Raising));
    let told = reports
        .iter()
        .filter(|it| raising(it.quarantine.map(|it| it.why)));
    assert_eq!(told.count(), 2, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sets_no_longest_lease_raises_nothing_and_has_leases_as_nodes_grant_them() {
    let nodes = nodes(3);
    let old = first(&nodes, OLD / 2);
    drop(old.lock("a").acquire().await.unwrap());
    let builder = Locks::builder().node_trust(NodeTrust::Watched);
    let unset = builder.on_nodes(nodes.to_vec()).unwrap();
    sleep(OLD).await;
    let lock = unset.lock("a").lease(OLD / 2);
    drop(lock.try_acquire().await.unwrap().unwrap());
    let refused = unset.lock("a").lease(OLD).try_acquire().await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(figures(&nodes), same(OLD / 2, &nodes));
}
