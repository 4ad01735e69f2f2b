//! Tests clients that were idle while slots got another owner: their slot map is stale.

use std::time::Instant;

use quorlock::redis::RedisTransport;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::hasty;
use quorlock_tests::requests;

use super::stage::{cluster, statistic};

server_tests![
    a_slot_that_moved_while_a_client_was_idle_costs_one_redirect,
    a_failover_while_a_client_was_idle_is_learned_from_one_redirect,
];

/// Returns how many requests a node has redirected.
fn redirected(node: &Server) -> u64 {
    statistic(node, "evalsha", "rejected_calls")
}

/// Returns how often the nodes were queried for the slot map.
fn looks(cluster: &Cluster) -> u64 {
    let nodes = cluster.nodes().iter();
    nodes
        .map(|node| statistic(node, "cluster|slots", "calls"))
        .sum()
}

/// Locks and releases a name within the time of one call each.
async fn lock_in_time(transport: &RedisTransport, name: &str) {
    let name = requests::name(name);
    let began = Instant::now();
    requests::take(transport, &name, 1).await;
    assert!(began.elapsed() < hasty().call_bound());
    requests::release(transport, &name, 1, 0).await.unwrap();
}

async fn a_slot_that_moved_while_a_client_was_idle_costs_one_redirect() {
    let cluster = cluster().await;
    let [from, to, _] = cluster.primaries()[..] else {
        panic!("there are three");
    };
    let name = cluster.name_on(from, "idle/");
    let slot = cluster.slot_of(&name);
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    lock_in_time(&transport, &name).await;
    tokio::task::block_in_place(|| cluster.move_slot(slot, from, to));
    let before = redirected(&cluster.nodes()[from]);
    let looked = looks(&cluster);
    // The acquire is redirected, and the release goes to the new owner.
    lock_in_time(&transport, &name).await;
    lock_in_time(&transport, &name).await;
    assert_eq!(redirected(&cluster.nodes()[from]) - before, 1);
    until("it queries the slot map", || looked < looks(&cluster)).await;
    tokio::task::block_in_place(|| cluster.move_slot(slot, to, from));
}

async fn a_failover_while_a_client_was_idle_is_learned_from_one_redirect() {
    let cluster = cluster().await;
    let before = cluster.primaries()[1];
    let transport = RedisTransport::open(&cluster.address(), hasty()).unwrap();
    lock_in_time(&transport, &cluster.name_on(before, "idle/known/")).await;
    let after = tokio::task::block_in_place(|| cluster.fail_over(before));
    let known = cluster.nodes().get(before).unwrap();
    let (so_far, looked) = (redirected(known), looks(&cluster));
    lock_in_time(&transport, &cluster.name_on(after, "idle/first/")).await;
    assert_eq!(redirected(known) - so_far, 1);
    until("it queries the slot map", || looked < looks(&cluster)).await;
    // The answer may still be on its way to the client. A redirect teaches it one slot, and the map all of them.
    let mut names = (0..).map(|number| cluster.name_on(after, &format!("idle/{number}/")));
    let mut is_direct = async || {
        let so_far = redirected(known);
        lock_in_time(&transport, &names.next().unwrap()).await;
        redirected(known) == so_far
    };
    let mut tries = 0;
    while !is_direct().await {
        tries += 1;
        assert!(tries < 50, "each slot is redirected");
    }
    for _ in 0..10 {
        assert!(is_direct().await);
    }
}
