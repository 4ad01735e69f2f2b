//! The clusters that these tests share, each used by one test at a time.

use quorlock::{Guard, Locks};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{claim_of, patient_client};
use quorlock_tests::pool::{Borrowed, Pool};

/// The number of clusters, and of tests at once.
pub(crate) const CLUSTERS: usize = 3;

/// Returns a cluster for this test alone, with all of its processes running.
pub(crate) async fn cluster() -> Borrowed<Cluster> {
    static POOL: Pool<Cluster, CLUSTERS> = Pool::new(Cluster::start);
    let cluster = POOL.borrow().await;
    tokio::task::block_in_place(|| cluster.mend());
    cluster
}

/// Returns a client of the cluster.
pub(crate) async fn client(cluster: &Cluster) -> Locks {
    patient_client(&cluster.address()).await
}

/// Returns the indices of the nodes that have the claim of this guard. A replica redirects reads, so only the owners of
/// slots answer.
pub(crate) fn claimed_at(cluster: &Cluster, name: &str, guard: &Guard) -> Vec<usize> {
    let owner = guard.owner_id().to_string();
    let nodes = cluster.nodes().iter().enumerate();
    let claimed = nodes.filter(|(_, node)| {
        claim_of(node, name).is_some_and(|(claimed_by, _)| claimed_by == owner)
    });
    claimed.map(|(index, _)| index).collect()
}

/// Waits until one connection listens for releases of a name at a node.
pub(crate) async fn listens(cluster: &Cluster, node: usize, name: &str) {
    let node = &cluster.nodes()[node];
    until("a waiter listens where the name lies", || {
        listeners(node, name).0 == 1
    })
    .await;
}

/// Returns the channel on which releases of a name are published.
pub(crate) fn release_channel(name: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}")
}

/// Returns how many listeners a node has for each of the two ways.
pub(crate) fn listeners(node: &Server, name: &str) -> (u32, u32) {
    let many = |word: &str| {
        let told = node.try_command::<(String, u32)>(&["PUBSUB", word, &release_channel(name)]);
        told.map_or(0, |(_, many)| many)
    };
    (many("NUMSUB"), many("SHARDNUMSUB"))
}

/// Waits until one connection listens for releases of a name at a node, in both ways.
pub(crate) async fn listens_in_both_ways(cluster: &Cluster, node: usize, name: &str) {
    let node = &cluster.nodes()[node];
    until("it listens in both ways", || {
        listeners(node, name) == (1, 1)
    })
    .await;
}

/// Returns a field of a command's statistics, 0 if the node has not executed the command.
pub(crate) fn statistic(node: &Server, command: &str, field: &str) -> u64 {
    let text: String = node.command(&["INFO", "commandstats"]);
    let prefix = format!("cmdstat_{command}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    let mut fields = line.unwrap_or_default().split(',');
    let value = fields.find_map(|each| each.strip_prefix(field)?.strip_prefix('='));
    value.map_or(0, |value| value.parse().unwrap())
}
