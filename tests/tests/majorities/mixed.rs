//! A majority of a cluster, a Sentinel group and a server.

use std::time::Instant;

use quorlock::Locks;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{is_claimed_by, until_renewed};

use super::stage::{LONGEST, cluster, key, primary_of, until_replicated, watching};

server_tests![a_server_a_group_and_a_cluster_are_one_majority];

async fn mixed(cluster: &Cluster, group: &SentinelGroup, server: &Server) -> Locks {
    let addresses = [cluster.address(), group.address(), server.address()];
    let connected = watching(LONGEST).quorum(addresses).await;
    connected.expect("the members can be used")
}

async fn a_server_a_group_and_a_cluster_are_one_majority() {
    let cluster = cluster().await;
    let group = tokio::task::block_in_place(|| SentinelGroup::start_of(2, 3));
    let server = Server::start();
    let (ours, theirs) = (
        mixed(&cluster, &group, &server).await,
        mixed(&cluster, &group, &server).await,
    );
    let guard = ours.lock("held").acquire().await.unwrap();
    // In the cluster, the middle one of the three shards is used.
    let primary = primary_of(&cluster, 1);
    let leads = group.settle();
    until("all members have the claim", || {
        is_claimed_by(&cluster.nodes()[primary], &key(1, "held"), &guard)
            && is_claimed_by(&group.servers()[leads], "held", &guard)
            && is_claimed_by(&server, "held", &guard)
    })
    .await;
    let lock = theirs.lock("held").wait(4 * BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });

    let works = async |what: &str, began: Instant| {
        let free = theirs.lock(format!("free/{what}")).acquire().await.unwrap();
        println!("{what} killed; a lock after {:?}", began.elapsed());
        // The member that was killed is not waited for: it votes again after one longest lease at the earliest.
        assert!(began.elapsed() < LONGEST);
        free.release().await.unwrap();
        until_renewed(&guard).await;
    };
    let began = Instant::now();
    group.servers()[leads].kill();
    works("the primary of the group", began).await;
    let _ = tokio::task::block_in_place(|| group.wait_for_another(leads));
    let promoted = Instant::now();
    // The group has a vote again, and then the cluster may be without a primary.
    let asking = theirs.lock("asks");
    while promoted.elapsed() < LONGEST + LONGEST / 4 {
        asking.acquire().await.unwrap().release().await.unwrap();
    }
    until_replicated(&cluster, primary);
    let replica = cluster.replica_of(primary);
    let began = Instant::now();
    cluster.nodes()[primary].kill();
    works("the primary of the shard", began).await;
    tokio::task::block_in_place(|| cluster.wait_for_promotion(replica));
    assert!(guard.is_held() && !waiter.is_finished());
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap();
    assert!(token < next.fencing_token());
    next.release().await.unwrap();
}
