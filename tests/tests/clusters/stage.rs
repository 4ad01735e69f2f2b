//! The cluster that these tests share, one test at a time.

use std::sync::OnceLock;

use quorlock::{Guard, Locks};
use quorlock_tests::clients::{claim_of, patient_client};
use quorlock_tests::cluster::Cluster;
use quorlock_tests::wait::until;
use tokio::sync::{Mutex, MutexGuard};

/// Returns the cluster for this test alone, with all of its processes running.
pub(crate) async fn cluster() -> MutexGuard<'static, Cluster> {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Mutex::new(Cluster::start()));
    let mut cluster = cluster.lock().await;
    tokio::task::block_in_place(|| cluster.mend());
    cluster
}

/// Returns a client of the cluster.
pub(crate) async fn client(cluster: &Cluster) -> Locks {
    patient_client(&cluster.address()).await
}

/// Returns the indices of the nodes that have the claim of this guard. A replica redirects readers, so only owners
/// answer.
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
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let node = &cluster.nodes()[node];
    until("a waiter listens where the name lies", || {
        let told = node.try_command::<(String, u32)>(&["PUBSUB", "NUMSUB", &channel]);
        told.is_ok_and(|(_, many)| many == 1)
    })
    .await;
}
