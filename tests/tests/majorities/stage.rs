//! The clusters that these tests share, each used by one test at a time, and the shards of a majority.

use std::time::Duration;

use quorlock::{Guard, Lock, Locks, LocksBuilder};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients;
use quorlock_tests::pool::{Borrowed, Pool};

/// The tags under which a majority of three shards keeps names.
pub(crate) const TAGS: [&str; 3] = ["quorlock-10213", "quorlock-13404", "quorlock-22561"];

/// The longest lease: longer than a failover, but short enough for a test to wait. A promoted replica has no vote for
/// this time.
pub(crate) const LONGEST: Duration = Duration::from_secs(4);

/// The number of clusters, and of tests at once.
pub(crate) const CLUSTERS: usize = 2;

/// Returns a cluster for this test alone. All of its processes run, and there are no keys, so that new processes are
/// trusted.
///
/// Shards keep serving while another one has no primary, as a majority requires.
pub(crate) async fn cluster() -> Borrowed<Cluster> {
    static POOL: Pool<Cluster, CLUSTERS> =
        Pool::new(|| Cluster::start_with(&["--cluster-require-full-coverage", "no"]));
    let cluster = POOL.borrow().await;
    tokio::task::block_in_place(|| {
        cluster.mend();
        for primary in cluster.primaries() {
            cluster.nodes()[primary].command::<()>(&["FLUSHALL"]);
        }
        cluster.settle();
    });
    cluster
}

pub(crate) fn watching(longest: Duration) -> LocksBuilder {
    clients::settings()
        .longest_lease(longest)
        .watchdog_lease(longest)
}

/// Returns a client of three shards.
pub(crate) async fn shards(cluster: &Cluster) -> Locks {
    shards_by(watching(LONGEST), cluster).await
}

pub(crate) async fn shards_by(builder: LocksBuilder, cluster: &Cluster) -> Locks {
    let connected = builder.majority_of_shards(cluster.address(), 3).await;
    connected.expect("the shards can be used")
}

/// Returns the key of a name on a shard.
pub(crate) fn key(shard: usize, name: &str) -> String {
    format!("{{{}}}:{name}", TAGS[shard])
}

/// Returns the node that has the names of a shard.
pub(crate) fn primary_of(cluster: &Cluster, shard: usize) -> usize {
    cluster
        .owner_of(TAGS[shard])
        .expect("the slot has an owner")
}

/// Returns the shards that have the claim of this guard.
pub(crate) fn claimed_on(cluster: &Cluster, name: &str, guard: &Guard) -> Vec<usize> {
    let stands = |shard: &usize| {
        let owner = cluster.owner_of(TAGS[*shard]);
        let node = owner.map(|owner| &cluster.nodes()[owner]);
        node.is_some_and(|node| clients::is_claimed_by(node, &key(*shard, name), guard))
    };
    (0..3).filter(stands).collect()
}

/// Waits until all shards have the claim, because an acquire returns when a majority has it.
pub(crate) async fn until_on_all(cluster: &Cluster, name: &str, guard: &Guard) {
    until("all shards have the claim", || {
        claimed_on(cluster, name, guard).len() == 3
    })
    .await;
}

/// Waits until the replica has all data of its primary.
pub(crate) fn until_replicated(cluster: &Cluster, primary: usize) {
    let node = &cluster.nodes()[primary];
    let acknowledged: u32 = node.command(&["WAIT", "1", "5000"]);
    assert_eq!(acknowledged, 1, "the replica follows");
}

/// Returns whether a shard's marker shows that its process was watched for long enough.
pub(crate) fn counts(cluster: &Cluster, shard: usize) -> bool {
    let owner = cluster.owner_of(TAGS[shard]);
    let marker = format!("quorlock_marker:{{{}}}", TAGS[shard]);
    owner.is_some_and(|owner| clients::marks_itself(&cluster.nodes()[owner], &marker))
}

/// Uses a lock until a shard counts.
pub(crate) async fn use_until_counts(cluster: &Cluster, shard: usize, lock: &Lock) {
    while !counts(cluster, shard) {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
}

/// Waits until a shard counts.
pub(crate) async fn until_counts(cluster: &Cluster, shard: usize) {
    let began = std::time::Instant::now();
    while !counts(cluster, shard) {
        assert!(began.elapsed() < 3 * BOUND, "the shard never counts again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
