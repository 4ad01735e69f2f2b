//! The reentrant lock on a cluster, with each way in which Redisson publishes and listens there, and through a failover.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use quorlock::Locks;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server::Server;
use quorlock_testbed::trials::trial;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::pool::{Borrowed, Pool};
use tokio::time::timeout;

use super::jvm::Jvm;
use super::patient::Patient;
use super::stage::{Side, Version, settings};

/// The modes of sharded subscriptions. Before 3.22, Redisson has only one way, whatever its setting.
const MODES: [&str; 2] = ["AUTO", "OFF"];

/// The time within which a waiter that is woken has the lock. A waiter that is not woken sleeps much longer.
const SOON: Duration = Duration::from_secs(2);

/// Returns the tests of this file.
pub(crate) fn trials(version: &'static Version) -> Vec<Trial> {
    let trials = MODES.into_iter().flat_map(|mode| {
        let title = |side: Side| {
            let (number, word) = (version.number, side.word());
            format!("{number}::cluster_{}::{word}_first", mode.to_lowercase())
        };
        [
            trial(&title(Side::Jvm), move || a_jvm_wakes_us(version, mode)),
            trial(&title(Side::Rust), move || we_wake_a_jvm(version, mode)),
        ]
    });
    trials.collect()
}

/// One of the clusters of all versions, for one test at a time.
async fn cluster() -> Borrowed<Cluster> {
    static POOL: Pool<Cluster, 2> = Pool::new(Cluster::start);
    let cluster = POOL.borrow().await;
    tokio::task::block_in_place(|| cluster.mend());
    cluster
}

async fn ours(cluster: &Cluster) -> Locks {
    let connected = settings().connect(cluster.address()).await;
    connected.expect("the cluster can be used")
}

/// Returns a thread of the JVM that uses the cluster in one mode.
fn theirs(jvm: &'static Jvm, mode: &str, name: &str, cluster: &Cluster) -> Patient {
    let ports = cluster.nodes().iter().map(Server::port);
    let nodes: Vec<_> = ports
        .map(|port| format!("redis://127.0.0.1:{port}"))
        .collect();
    Patient::new(jvm, name, &format!("cluster:{mode};{}", nodes.join(";")))
}

/// Returns a name on the first primary, and the index of that primary.
fn place(cluster: &Cluster, version: &Version, mode: &str, side: Side) -> (String, usize) {
    let primary = cluster.primaries()[0];
    let prefix = format!("interop/{}/{mode}/{}/", version.number, side.word());
    (cluster.name_on(primary, &prefix), primary)
}

/// Promotes the replica of a primary when the replica has the claim.
fn fail_over(cluster: &Cluster, primary: usize) -> usize {
    tokio::task::block_in_place(|| {
        let acknowledged: u32 = cluster.nodes()[primary].command(&["WAIT", "1", "5000"]);
        assert_eq!(acknowledged, 1);
        let replica = cluster.fail_over(primary);
        cluster.settle();
        replica
    })
}

async fn a_jvm_wakes_us(version: &'static Version, mode: &'static str) {
    let cluster = cluster().await;
    let (name, primary) = place(&cluster, version, mode, Side::Jvm);
    let theirs = theirs(version.jvm(), mode, &name, &cluster);
    let locks = ours(&cluster).await;
    let mut at = primary;
    for through_a_failover in [false, true] {
        theirs.acquire_at_last().await;
        let lock = locks.lock(&name).wait(2 * BOUND);
        assert!(lock.try_acquire().await.unwrap().is_none());
        let waiting = tokio::spawn(async move { lock.acquire().await });
        if through_a_failover {
            at = fail_over(&cluster, at);
        }
        let channel = format!("redisson_lock__channel:{{{name}}}");
        // The owner is looked up each time: on a busy machine the nodes may take the new primary for dead, and promote the
        // old one again. A waiter follows within a second or at its next request, which is five seconds after the last one.
        until("we listen where the name lies", || {
            let words = ["PUBSUB", "SHARDNUMSUB", &channel];
            let owner = cluster.owner_of(&name);
            owner.is_some_and(|at| cluster.nodes()[at].command::<(String, u32)>(&words).1 == 1)
        })
        .await;
        assert!(!waiting.is_finished());
        theirs.release_at_last().await;
        let released = Instant::now();
        let guard = timeout(2 * BOUND, waiting).await.unwrap().unwrap().unwrap();
        println!(
            "{} {mode}: we were woken {:?} after the reply",
            version.number,
            released.elapsed()
        );
        assert!(released.elapsed() < SOON);
        assert!(!theirs.is_let_in().await);
        guard.release().await.unwrap();
    }
}

async fn we_wake_a_jvm(version: &'static Version, mode: &'static str) {
    let cluster = cluster().await;
    let (name, mut at) = place(&cluster, version, mode, Side::Rust);
    let theirs = theirs(version.jvm(), mode, &name, &cluster);
    let locks = ours(&cluster).await;
    for through_a_failover in [false, true] {
        let guard = locks.lock(&name).lease(4 * BOUND).acquire().await.unwrap();
        if through_a_failover {
            at = fail_over(&cluster, at);
        }
        assert!(!theirs.is_let_in().await);
        let waiter = theirs.clone();
        let waiting = tokio::spawn(async move { waiter.acquire().await });
        theirs.is_asleep().await;
        let released = Instant::now();
        guard.release().await.unwrap();
        timeout(2 * BOUND, waiting).await.unwrap().unwrap().unwrap();
        println!(
            "{} {mode}: the JVM was woken {:?} after",
            version.number,
            released.elapsed()
        );
        assert!(released.elapsed() < SOON);
        assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
        theirs.release_at_last().await;
    }
}
