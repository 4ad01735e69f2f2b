//! Tests holds, waiters and votes when the primary of one shard dies.

use std::time::{Duration, Instant};

use quorlock::{Lock, Token};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::BOUND;
use quorlock_tests::clients::until_renewed;

use super::stage::{
    LONGEST, claimed_on, cluster, counts, key, primary_of, shards, until_counts, until_on_all,
    until_replicated, use_until_counts,
};

server_tests![
    a_majority_grants_soon_after_the_death_of_a_primary_and_a_hold_lives_on,
    a_promoted_replica_votes_again_after_one_longest_lease,
    a_promoted_replica_that_no_client_uses_votes_again_too,
    without_a_majority_of_shards_no_lock_is_granted,
];

/// The bound on the time until new locks are granted after a primary has died. It is usually some milliseconds. It need
/// only be shorter than the time after which the promoted replica votes.
const SOON: Duration = LONGEST;

async fn a_majority_grants_soon_after_the_death_of_a_primary_and_a_hold_lives_on() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let guard = ours.lock("held").acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    let used = theirs.lock("used").acquire().await.unwrap();
    let mut token = used.fencing_token();
    used.release().await.unwrap();
    let lock = theirs.lock("held").wait(3 * BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });

    for shard in 0..3 {
        let dies = primary_of(&cluster, shard);
        let replica = cluster.replica_of(dies);
        until_replicated(&cluster, dies);
        let began = Instant::now();
        cluster.nodes()[dies].kill();
        // Locks of clients with connections to the primary, and of a new client.
        let used = theirs.lock("used").acquire().await.unwrap();
        let first = began.elapsed();
        assert!(token < used.fencing_token());
        token = used.fencing_token();
        used.release().await.unwrap();
        let other = ours.lock(format!("new/{shard}")).acquire().await.unwrap();
        println!(
            "killed the primary of shard {shard}; a lock after {first:?}, another after {:?}",
            began.elapsed()
        );
        assert!(began.elapsed() < SOON);
        other.release().await.unwrap();
        token = use_until_promoted(&cluster, replica, &theirs.lock("used"), token).await;
        println!("promoted after {:?}", began.elapsed());
        assert!(guard.is_held() && !waiter.is_finished());
        until_renewed(&guard).await;
        tokio::task::block_in_place(|| cluster.mend());
        // The next primary dies when this shard has a vote again.
        use_until_counts(&cluster, shard, &theirs.lock("asks")).await;
    }
    assert!(guard.is_held());
    until_on_all(&cluster, "held", &guard).await;
    let held = guard.fencing_token();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap();
    assert!(held < next.fencing_token());
    next.release().await.unwrap();
}

/// Uses a lock while the other nodes elect the replica. Returns the last token.
async fn use_until_promoted(
    cluster: &Cluster,
    replica: usize,
    lock: &Lock,
    mut token: Token,
) -> Token {
    let mut slowest = Duration::ZERO;
    while !cluster.primaries().contains(&replica) {
        let asked = Instant::now();
        let used = lock.acquire().await.unwrap();
        slowest = slowest.max(asked.elapsed());
        assert!(token < used.fencing_token());
        token = used.fencing_token();
        used.release().await.unwrap();
    }
    println!("the slowest lock until the replica was promoted took {slowest:?}");
    assert!(slowest < SOON);
    token
}

async fn a_promoted_replica_votes_again_after_one_longest_lease() {
    let cluster = cluster().await;
    let locks = shards(&cluster).await;
    let guard = locks.lock("first").acquire().await.unwrap();
    until_on_all(&cluster, "first", &guard).await;
    guard.release().await.unwrap();
    let (dies, stops) = (primary_of(&cluster, 0), primary_of(&cluster, 1));
    let replica = cluster.replica_of(dies);
    until_replicated(&cluster, dies);
    cluster.nodes()[dies].kill();
    tokio::task::block_in_place(|| cluster.wait_for_promotion(replica));
    let promoted = Instant::now();
    // The shard receives the request and has the claim, but its vote does not count, so without another shard there is no
    // majority.
    let guard = locks.lock("second").acquire().await.unwrap();
    until_on_all(&cluster, "second", &guard).await;
    guard.release().await.unwrap();
    assert!(!counts(&cluster, 0));
    cluster.nodes()[stops].pause();
    let refused = locks.lock("third").try_acquire().await.unwrap_err();
    cluster.nodes()[stops].resume();
    assert!(refused.to_string().contains("quarantined"), "{refused}");
    until_counts(&cluster, 0).await;
    println!("promoted; voted again {:?} after that", promoted.elapsed());
    assert!(LONGEST < promoted.elapsed() + Duration::from_millis(100));
    let fourth = locks.lock("fourth").acquire().await.unwrap();
    fourth.release().await.unwrap();
    // From now on, the shard forms a majority with one other shard.
    cluster.nodes()[stops].pause();
    let granted = locks.lock("third").acquire().await;
    cluster.nodes()[stops].resume();
    let guard = granted.unwrap();
    assert!(claimed_on(&cluster, "third", &guard).contains(&0));
    guard.release().await.unwrap();
}

/// No lock is used after the failover, so only the clients' probes can find the promoted replica.
async fn a_promoted_replica_that_no_client_uses_votes_again_too() {
    let cluster = cluster().await;
    let locks = shards(&cluster).await;
    let guard = locks.lock("before").acquire().await.unwrap();
    guard.release().await.unwrap();
    let (dies, stops) = (primary_of(&cluster, 0), primary_of(&cluster, 1));
    let replica = cluster.replica_of(dies);
    until_replicated(&cluster, dies);
    cluster.nodes()[dies].kill();
    tokio::task::block_in_place(|| cluster.wait_for_promotion(replica));
    until_counts(&cluster, 0).await;
    cluster.nodes()[stops].pause();
    let granted = locks.lock("after").try_acquire().await;
    cluster.nodes()[stops].resume();
    let guard = granted.unwrap().expect("the lock is free");
    assert!(claimed_on(&cluster, "after", &guard).contains(&0));
    guard.release().await.unwrap();
}

async fn without_a_majority_of_shards_no_lock_is_granted() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let guard = ours.lock("held").acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    let stopped = [0, 1].map(|shard| primary_of(&cluster, shard));
    for node in stopped {
        cluster.nodes()[node].pause();
    }
    let refused = theirs.lock("free").try_acquire().await;
    let held = theirs.lock("held").try_acquire().await;
    for node in stopped {
        cluster.nodes()[node].resume();
    }
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("no quorum"), "{refused}");
    assert!(!matches!(held, Ok(Some(_))), "{held:?}");
    assert!(guard.is_held());
    until_renewed(&guard).await;
    let left: Vec<String> =
        cluster.nodes()[primary_of(&cluster, 2)].command(&["HVALS", &key(2, "free")]);
    assert!(left.is_empty(), "what the one shard granted is given back");
    guard.release().await.unwrap();
}
