//! Clusters of three members, some of which die or stand still.

use quorlock::Locks;
use quorlock_testbed::members::{Kind, Members};
use tokio::time::timeout;

use crate::databases::{Database, SECOND, bare, check, patient};
use crate::support;

/// A kind of cluster.
pub(crate) trait Cluster: Kind + Send + Sync + 'static {
    fn three() -> Members<Self>
    where
        Self: Sized;
}

/// Checks that a name is held by another client, as soon as there is a leader.
async fn is_held(locks: &Locks) {
    let tried = loop {
        if let Ok(tried) = locks.lock("a").try_acquire().await {
            break tried;
        }
    };
    assert!(tried.is_none());
}

pub(crate) async fn a_hold_survives_the_death_of_the_leader<K: Cluster>(server: Members<K>)
where
    Members<K>: Database,
{
    drop(server);
    let mut cluster = K::three();
    let (one, other) = (patient(bare(&cluster)), patient(bare(&cluster)));
    let guard = one.lock("a").lease(60 * SECOND).acquire().await.unwrap();
    let token = guard.fencing_token();
    cluster.kill_one(cluster.leader());
    is_held(&other).await;
    while guard.extend(60 * SECOND).await.is_err() {}
    assert!(guard.is_held());
    guard.release().await.unwrap();
    let guard = other.lock("a").acquire().await.unwrap();
    assert!(token < guard.fencing_token());
    cluster.launch();
    // Another leader, which may be the member that has come back.
    cluster.kill_one(cluster.leader());
    is_held(&one).await;
    guard.release().await.unwrap();
}

/// Its connections stay open, and nothing comes over them.
pub(crate) async fn a_leader_that_stands_still_is_left<K: Cluster>(server: Members<K>) {
    drop(server);
    let cluster = K::three();
    let connect = || Locks::connect(cluster.address());
    // The time-outs are those that a client has by itself.
    let (one, other) = (connect().await.unwrap(), connect().await.unwrap());
    let guard = one.lock("a").acquire().await.unwrap();
    cluster.stop_one(cluster.leader());
    let waiting = tokio::spawn(async move { other.lock("a").acquire().await.unwrap() });
    // Longer than a lease of the watchdog.
    tokio::time::sleep(35 * SECOND).await;
    assert!(guard.is_held());
    assert!(!waiting.is_finished());
    guard.release().await.unwrap();
    let guard = waiting.await.unwrap();
    cluster.go_on();
    guard.release().await.unwrap();
}

pub(crate) async fn no_two_clients_hold_while_leaders_die<K: Cluster>(server: Members<K>)
where
    Members<K>: Database,
{
    drop(server);
    let mut cluster = K::three();
    let stores: Vec<_> = (0..4).map(|_| bare(&cluster)).collect();
    let locking = tokio::spawn(support::exclude_each_other_despite_faults(stores));
    let mut died = 0;
    while !locking.is_finished() {
        tokio::time::sleep(SECOND).await;
        let leader = cluster.leader();
        cluster.kill_one(leader);
        died += 1;
        tokio::time::sleep(SECOND).await;
        cluster.launch();
    }
    locking.await.unwrap();
    assert!(0 < died, "the clients were too fast");
}

pub(crate) async fn without_a_majority_no_claim_is_granted_and_that_is_said<K: Cluster>(
    server: Members<K>,
) where
    Members<K>: Database,
{
    drop(server);
    let mut cluster = K::three();
    let store = bare(&cluster);
    check(&*store).await.unwrap();
    let locks = Locks::connect(cluster.address()).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    cluster.kill_one(0);
    cluster.kill_one(1);
    let said = async {
        let tried = async || locks.lock("b").try_acquire().await.unwrap_err();
        while !tried().await.to_string().contains("majority") {}
    };
    timeout(120 * SECOND, said).await.unwrap();
    cluster.launch();
    guard.release().await.unwrap();
}
