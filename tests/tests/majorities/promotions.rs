//! Tests replicas that are promoted without the claims of their primaries.

use std::time::{Duration, Instant};

use quorlock::Lost;
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};

use super::stage::{
    LONGEST, claimed_on, cluster, key, primary_of, shards, shards_by, until_on_all,
    until_replicated, watching,
};

server_tests![
    a_promoted_replica_without_the_claim_has_no_vote,
    two_promotions_at_once_without_the_claims_give_nothing_away,
    a_hold_that_two_promotions_have_forgotten_is_lost_and_says_so,
];

/// A lease that is longer than the test and its quarantine.
const LONG: Duration = Duration::from_secs(30);

/// Promotes a replica at once, without a vote, and makes it forget a name.
fn promote_without(cluster: &Cluster, shard: usize, name: &str) {
    let primary = primary_of(cluster, shard);
    let replica = cluster.replica_of(primary);
    // The replica has the marker but not the claim. This is the state of a replica that lags a little.
    until_replicated(cluster, primary);
    cluster.nodes()[replica].command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    cluster.wait_for_promotion(replica);
    cluster.nodes()[replica].command::<()>(&["DEL", &key(shard, name)]);
}

/// A holds shards 0 and 1; shard 2 does not have its claim. Shard 0 fails over to a replica that does not have it either.
/// B may be granted shard 2, and must not be granted shard 0.
async fn a_promoted_replica_without_the_claim_has_no_vote() {
    let cluster = cluster().await;
    // A replica that lags tells A of nothing, unlike this test, which deletes the claim.
    let (holder, other) = (
        shards_by(watching(LONG).watch_claims(false), &cluster).await,
        shards_by(watching(LONG), &cluster).await,
    );
    let guard = holder.lock("held").lease(LONG).acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    cluster.nodes()[primary_of(&cluster, 2)].command::<()>(&["DEL", &key(2, "held")]);
    tokio::task::block_in_place(|| promote_without(&cluster, 0, "held"));
    assert_eq!(claimed_on(&cluster, "held", &guard), [1]);
    let newcomer = shards_by(watching(LONG), &cluster).await;
    for _ in 0..20 {
        for locks in [&other, &newcomer] {
            let granted = locks.lock("held").try_acquire().await;
            assert!(!matches!(granted, Ok(Some(_))), "{granted:?}");
        }
    }
    // If the nodes were not watched, these votes would be a majority.
    let free = |shard| {
        let node = &cluster.nodes()[primary_of(&cluster, shard)];
        node.command::<usize>(&["EXISTS", &key(shard, "held")]) == 0
    };
    // What was granted in the last round is released afterwards.
    until("what was granted is released", || free(0) && free(2)).await;
    assert!(guard.is_held());
}

/// Shards 0 and 1 fail over at the same time, to replicas that do not have A's claim. B is granted the name there, but
/// none of it counts before A's lease is over.
async fn two_promotions_at_once_without_the_claims_give_nothing_away() {
    let cluster = cluster().await;
    let (holder, other) = (shards(&cluster).await, shards(&cluster).await);
    // Nothing renews the lease, so nothing notifies the holder, which relies on its lease.
    let guard = holder.lock("held").lease(LONGEST).acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    let token = guard.fencing_token();
    let lock = other.lock("held").wait(3 * BOUND);
    let waiter = tokio::spawn(async move { (lock.acquire().await, Instant::now()) });
    tokio::task::block_in_place(|| {
        promote_without(&cluster, 0, "held");
        promote_without(&cluster, 1, "held");
    });
    let promoted = Instant::now();
    assert!(guard.is_held(), "the lease is long enough for this test");
    let ends = promoted + guard.validity();
    let (next, served) = waiter.await.unwrap();
    let next = next.unwrap();
    println!("promoted twice; served {:?} after that", served - promoted);
    assert!(ends <= served && !guard.is_held());
    assert!(token < next.fencing_token());
    next.release().await.unwrap();
}

async fn a_hold_that_two_promotions_have_forgotten_is_lost_and_says_so() {
    let cluster = cluster().await;
    let (holder, other) = (shards(&cluster).await, shards(&cluster).await);
    let guard = holder.lock("held").acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    let token = guard.fencing_token();
    tokio::task::block_in_place(|| {
        promote_without(&cluster, 0, "held");
        promote_without(&cluster, 1, "held");
    });
    let promoted = Instant::now();
    let lost = tokio::time::timeout(LONGEST, guard.lost()).await.unwrap();
    println!(
        "promoted twice; the hold lost {:?} after that",
        promoted.elapsed()
    );
    assert_eq!(lost, Lost::Taken);
    let next = other.lock("held").wait(3 * BOUND).acquire().await.unwrap();
    println!("the next one served {:?} after that", promoted.elapsed());
    assert!(LONGEST < promoted.elapsed() + Duration::from_millis(500));
    assert!(token < next.fencing_token());
    next.release().await.unwrap();
}
