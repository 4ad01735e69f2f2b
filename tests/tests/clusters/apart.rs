//! Tests that a shard that is silent delays nothing at the others.

use std::time::Duration;

use futures_util::future::join_all;
use quorlock::redis::RedisConfig;
use quorlock::{Guard, Locks};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;
use quorlock_tests::clients::{settings, until_renewed};

use super::stage::{client, cluster};

server_tests![a_silent_primary_delays_neither_renewals_nor_releases_at_another,];

const LEASE: Duration = Duration::from_secs(6);

/// The number of holds on the silent primary: more than the keeper sends at once.
const MANY: usize = 1_700;

/// The answers of the silent primary are awaited for longer than the lease.
async fn a_silent_primary_delays_neither_renewals_nor_releases_at_another() {
    let cluster = cluster().await;
    let [silent, other, _] = cluster.primaries()[..] else {
        panic!("there are three");
    };
    set_coverage(&cluster, "no");
    let calls = RedisConfig::default().call_timeout(2 * LEASE);
    let settings = settings().redis(calls).watchdog_lease(LEASE);
    let locks = settings.connect(cluster.address()).await.unwrap();
    let stay = hold(&locks, &cluster.name_on(other, "apart/"), 5).await;
    let _lost = hold(&locks, &cluster.name_on(silent, "apart/"), MANY).await;
    let replica = cluster.replica_of(silent);
    let nodes = cluster.nodes();
    // The replica first: it would take the place of its primary.
    nodes[replica].pause();
    nodes[silent].pause();
    for _ in 0..4 {
        for guard in &stay {
            until_renewed(guard).await;
        }
    }
    let theirs = client(&cluster).await;
    for guard in stay {
        let name = guard.names().next().unwrap().to_string();
        drop(guard);
        let next = theirs.lock(name).wait(BOUND).acquire().await.unwrap();
        next.release().await.unwrap();
    }
    nodes[silent].resume();
    nodes[replica].resume();
    set_coverage(&cluster, "yes");
}

/// Acquires many names with this tag.
async fn hold(locks: &Locks, tag: &str, many: usize) -> Vec<Guard> {
    let mut guards = Vec::new();
    let names: Vec<String> = (0..many).map(|n| format!("{{{tag}}}:{n}")).collect();
    for names in names.chunks(100) {
        let held = names.iter().map(|name| locks.lock(name));
        let held = held.map(|lock| async move { lock.acquire().await.unwrap() });
        guards.extend(join_all(held).await);
    }
    guards
}

fn set_coverage(cluster: &Cluster, value: &str) {
    for node in cluster.nodes() {
        node.command::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", value]);
    }
}
