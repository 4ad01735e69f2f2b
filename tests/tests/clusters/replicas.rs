//! Tests subscriptions at a node that has become a replica of its shard.

use std::time::Duration;

use quorlock::RetryPolicy;
use quorlock::redis::RedisTransport;
use quorlock::transport::Transport;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{hand_over, hasty, settings, waiter};
use quorlock_tests::heard::Heard;
use quorlock_tests::requests;

use super::stage::{client, cluster, listens_in_both_ways, release_channel};

server_tests![
    a_waiter_follows_a_failover_that_only_its_own_node_knows_of,
    a_replica_delivers_what_its_primary_publishes,
];

/// A lease that is longer than a test, so that only a message wakes a waiter.
const LEASE: Duration = Duration::from_secs(60);

/// Promotes the replica of a primary, and only the two of them know of it: the other nodes forget the replica first.
fn take_over_unnoticed(cluster: &Cluster, primary: usize) -> usize {
    let replica = cluster.replica_of(primary);
    let promoted = &cluster.nodes()[replica];
    let id: String = promoted.command(&["CLUSTER", "MYID"]);
    for (index, node) in cluster.nodes().iter().enumerate() {
        if ![primary, replica].contains(&index) {
            node.command::<()>(&["CLUSTER", "FORGET", &id]);
        }
    }
    promoted.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    cluster.wait_for_promotion(replica);
    replica
}

/// Lets the nodes know a node that they have forgotten.
fn introduce(cluster: &Cluster, index: usize) {
    let node = &cluster.nodes()[index];
    let (port, bus) = (node.port().to_string(), node.bus_port().to_string());
    for other in cluster.nodes() {
        if other.port() != node.port() {
            other.command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
    }
    cluster.settle();
}

/// Waits in both ways at the primary, which then becomes a replica. No other node knows of the promotion.
async fn a_waiter_follows_a_failover_that_only_its_own_node_knows_of() {
    let cluster = cluster().await;
    // The waiter itself asks too rarely to learn of the failover in this test.
    let rarely = RetryPolicy::default().poll_cap(LEASE);
    let theirs = settings().retry(rarely).connect(cluster.address()).await;
    let (ours, theirs) = (client(&cluster).await, theirs.unwrap());
    let before = cluster.primaries()[0];
    let name = cluster.name_on(before, "taken-over/");
    let guard = ours.lock(&name).lease(LEASE).acquire().await.unwrap();
    let behind = waiter(&theirs.lock(&name));
    listens_in_both_ways(&cluster, before, &name).await;
    let replica = tokio::task::block_in_place(|| take_over_unnoticed(&cluster, before));
    listens_in_both_ways(&cluster, replica, &name).await;
    tokio::task::block_in_place(|| introduce(&cluster, replica));
    guard.extend(LEASE).await.unwrap();
    let (next, _) = hand_over(guard, behind).await;
    next.release().await.unwrap();
}

/// Takes away, or gives back, what a replica needs to copy its primary's data.
fn replicates(cluster: &Cluster, primary: usize, rights: [&str; 2]) {
    let node = &cluster.nodes()[primary];
    let words = ["ACL", "SETUSER", "default"].into_iter().chain(rights);
    node.command::<()>(&words.collect::<Vec<_>>());
    node.command::<()>(&["CLIENT", "KILL", "TYPE", "replica"]);
}

/// A client that knows nothing of a failover subscribes at the old primary, which accepts that as a replica. Messages come
/// over the cluster bus, so the state of replication does not matter.
async fn a_replica_delivers_what_its_primary_publishes() {
    let cluster = cluster().await;
    let before = cluster.primaries()[1];
    let name = cluster.name_on(before, "delivered/");
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    requests::take(&transport, &requests::name(&name), 1).await;
    let after = tokio::task::block_in_place(|| cluster.fail_over(before));
    tokio::task::block_in_place(|| cluster.settle());
    let heard = Heard::nothing();
    let _subscription = transport.subscribe(&requests::name(&name).into(), heard.clone());
    listens_in_both_ways(&cluster, before, &name).await;
    let (primary, replica) = (&cluster.nodes()[after], &cluster.nodes()[before]);
    let mut wakes = 0;
    // A message to the shard directly after the same message to all nodes counts as the same release. So the order is this
    // one, and the second two differ from the first two.
    let mut is_delivered = async |message: &str| {
        for verb in ["SPUBLISH", "PUBLISH"] {
            primary.command::<u32>(&[verb, &release_channel(&name), message]);
            wakes += 1;
            until("the message arrives", || heard.wakes().len() == wakes).await;
        }
    };
    is_delivered("0").await;
    replicates(&cluster, after, ["-psync", "-sync"]);
    until("replication is broken", || {
        let state: String = replica.command(&["INFO", "replication"]);
        state.contains("master_link_status:down")
    })
    .await;
    is_delivered("1").await;
    replicates(&cluster, after, ["+psync", "+sync"]);
    requests::release(&transport, &requests::name(&name), 1, 0)
        .await
        .unwrap();
    // The redirect of that request has moved the subscription.
    listens_in_both_ways(&cluster, after, &name).await;
}
