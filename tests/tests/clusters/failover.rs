//! Tests holds and waiters when a replica takes the place of its primary.

use std::time::{Duration, Instant};

use quorlock::Guard;
use quorlock_testbed::cluster::{Cluster, ClusterSetup};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{hand_over, is_claimed_by, waiter};

use super::stage::{claimed_at, client, cluster, listens};

server_tests![
    a_failover_on_request_moves_holds_and_wake_ups,
    a_hold_lives_through_the_death_of_its_primary_and_waiters_are_served,
    a_primary_that_stands_still_is_left_for_its_replica,
    an_order_to_fail_over_that_the_servers_forgot_is_given_again,
];

/// A lease that is longer than a failover.
const LEASE: Duration = Duration::from_secs(60);

/// The bound on a waiter's grant after the promotion of the replica. Other nodes learn of the promotion, the client
/// queries them every 100 ms to 200 ms, and the waiter tries again within another 100 ms. Without that, its pauses would
/// double without a bound.
const SOON: Duration = BOUND;

/// Waits until the replica has everything, because a failover may lose what the replica lacks.
async fn replicated(cluster: &Cluster, replica: usize, name: &str, guard: &Guard) {
    let replica = &cluster.nodes()[replica];
    replica.command::<()>(&["READONLY"]);
    until("the replica has the claim", || {
        is_claimed_by(replica, name, guard)
    })
    .await;
    replica.command::<()>(&["READWRITE"]);
}

async fn a_failover_on_request_moves_holds_and_wake_ups() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let before = cluster.primaries()[0];
    let name = cluster.name_on(before, "asked/");
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    let behind = waiter(&theirs.lock(&name));
    listens(&cluster, before, &name).await;
    let replica = tokio::task::block_in_place(|| cluster.fail_over(before));
    guard.extend(LEASE).await.unwrap();
    assert_eq!(claimed_at(&cluster, &name, &guard), [replica]);
    let (next, span) = hand_over(guard, behind).await;
    assert!(span < SOON);
    next.release().await.unwrap();
}

async fn a_hold_lives_through_the_death_of_its_primary_and_waiters_are_served() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let primaries = cluster.primaries();
    let (dies, lives) = (primaries[0], primaries[1]);
    let replica = cluster.replica_of(dies);
    let [held, free] = ["held/", "free/"].map(|prefix| cluster.name_on(dies, prefix));
    let other = cluster.name_on(lives, "other/");
    let guard = ours.lock(&held).lease(LEASE / 2).acquire().await.unwrap();
    let unharmed = ours.lock(&other).lease(LEASE / 2).acquire().await.unwrap();
    replicated(&cluster, replica, &held, &guard).await;
    let behind = waiter(&theirs.lock(&held));
    listens(&cluster, dies, &held).await;

    let began = Instant::now();
    cluster.nodes()[dies].kill();
    let free = waiter(&theirs.lock(&free));
    tokio::task::block_in_place(|| cluster.wait_for_promotion(replica));
    let promoted = Instant::now();
    let (granted, served) = free.await.unwrap();
    println!(
        "killed; promoted after {:?}, a waiter served {:?} after that",
        promoted - began,
        served.saturating_duration_since(promoted)
    );
    assert!(served < promoted + SOON);
    granted.release().await.unwrap();

    assert!(guard.is_held() && unharmed.is_held());
    let before = guard.validity();
    guard.extend(LEASE).await.unwrap();
    assert!(before < guard.validity());
    unharmed.extend(LEASE).await.unwrap();
    unharmed.release().await.unwrap();
    assert!(!behind.is_finished());
    listens(&cluster, replica, &held).await;
    let (next, _) = hand_over(guard, behind).await;
    next.release().await.unwrap();
}

async fn a_primary_that_stands_still_is_left_for_its_replica() {
    let cluster = cluster().await;
    let (ours, theirs) = (client(&cluster).await, client(&cluster).await);
    let stands = cluster.primaries()[2];
    let replica = cluster.replica_of(stands);
    let name = cluster.name_on(stands, "stopped/");
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    replicated(&cluster, replica, &name, &guard).await;
    cluster.nodes()[stands].pause();
    let behind = waiter(&theirs.lock(&name));
    tokio::task::block_in_place(|| cluster.wait_for_promotion(replica));
    listens(&cluster, replica, &name).await;
    assert!(guard.is_held());
    cluster.nodes()[stands].resume();
    guard.extend(LEASE).await.unwrap();
    let (next, _) = hand_over(guard, behind).await;
    assert_eq!(claimed_at(&cluster, &name, &next), [replica]);
    next.release().await.unwrap();
}

async fn an_order_to_fail_over_that_the_servers_forgot_is_given_again() {
    let cluster = Cluster::start_by(&ClusterSetup {
        node_timeout: Duration::from_secs(10),
        ..ClusterSetup::new(&[])
    });
    let voters = &cluster.nodes()[1..3];
    tokio::task::block_in_place(|| {
        voters.iter().for_each(Server::pause);
        std::thread::scope(|scope| {
            // The servers forget an order after five seconds.
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5_500));
                voters.iter().for_each(Server::resume);
            });
            assert_eq!(cluster.fail_over(0), 3);
        });
    });
}
