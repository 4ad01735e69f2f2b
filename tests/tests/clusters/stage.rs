//! The one cluster of these tests, for one test after the other.

use std::sync::OnceLock;
use std::time::Duration;

use quorlock::transport::RedisConfig;
use quorlock::{Guard, Locks, LocksBuilder, RetryPolicy};
use quorlock_tests::clients::claim_of;
use quorlock_tests::cluster::Cluster;
use quorlock_tests::wait::until;
use tokio::sync::{Mutex, MutexGuard};

/// The cluster, for this test alone, with all of its processes in place.
pub(crate) async fn cluster() -> MutexGuard<'static, Cluster> {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(|| Mutex::new(Cluster::start()));
    let mut cluster = cluster.lock().await;
    tokio::task::block_in_place(|| cluster.mend());
    cluster
}

/// What fails is found out soon.
pub(crate) fn redis() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(Duration::from_secs(1))
        .call_timeout(Duration::from_secs(1))
        .ping_interval(Duration::from_millis(200))
}

pub(crate) fn settings() -> LocksBuilder {
    let member_timeout = Duration::from_millis(500);
    Locks::builder()
        .redis(redis())
        .member_timeout(member_timeout)
}

/// A client of the cluster. Its pauses double without a bound: it is a node's return that ends them.
pub(crate) async fn client(cluster: &Cluster) -> Locks {
    client_at(&cluster.address()).await
}

/// A client of the cluster at this address.
pub(crate) async fn client_at(address: &str) -> Locks {
    let hour = Duration::from_secs(3600);
    let retry = RetryPolicy::default().backoff_cap(hour);
    let settings = settings().retry(retry.without_quorum(hour));
    settings
        .connect(address)
        .await
        .expect("the cluster can be used")
}

/// The numbers of the nodes at which the claim of this guard stands. (A replica sends readers elsewhere, so only owners
/// answer.)
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
