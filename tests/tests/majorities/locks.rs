//! Tests locks on a majority of the shards of one cluster, without faults.

use std::time::{Duration, Instant};

use quorlock::operate::Summary;
use quorlock::{AcquireError, ConfigError};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::until_renewed;

use super::stage::{
    LONGEST, TAGS, claimed_on, cluster, counts, key, primary_of, shards, until_on_all,
};

server_tests![
    a_name_is_locked_on_three_primaries_in_one_slot_on_each,
    a_waiter_is_woken_by_a_release,
    every_kind_of_lock_works_on_shards,
    a_semaphore_works_on_shards,
    operators_see_and_free_names,
];

async fn a_name_is_locked_on_three_primaries_in_one_slot_on_each() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let mut primaries: Vec<_> = (0..3).map(|shard| primary_of(&cluster, shard)).collect();
    primaries.dedup();
    assert_eq!(primaries.len(), 3);
    let guard = ours.lock("orders/42").acquire().await.unwrap();
    assert!(
        theirs
            .lock("orders/42")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    until_on_all(&cluster, "orders/42", &guard).await;
    for (shard, primary) in primaries.iter().enumerate() {
        let node = &cluster.nodes()[*primary];
        let mut keys = cluster.keys_of(*primary, cluster.slot_of(TAGS[shard]));
        keys.sort();
        let name = key(shard, "orders/42");
        let expected = [
            format!("quorlock_marker:{{{}}}", TAGS[shard]),
            format!("redisson_lock_token:{name}"),
            name,
        ];
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(keys, expected);
        // The node has no other keys.
        assert_eq!(node.command::<usize>(&["DBSIZE"]), 3);
        assert!(counts(&cluster, shard));
    }
    until_renewed(&guard).await;
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    let next = theirs
        .lock("orders/42")
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    assert!(token < next.fencing_token());
    next.release().await.unwrap();
}

/// Its permits have no tag of their own, because shards store all names under theirs.
async fn a_semaphore_works_on_shards() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let semaphore = ours.semaphore("pool", 2);
    let guard = semaphore.acquire().await.unwrap();
    let other = theirs.semaphore("pool", 2).acquire().await.unwrap();
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let mut names: Vec<_> = guard.names().chain(other.names()).collect();
    names.sort();
    assert_eq!(
        names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["pool:permit:0", "pool:permit:1"]
    );
    let waiter = tokio::spawn(async move { semaphore.wait(BOUND).acquire().await });
    other.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
    guard.release().await.unwrap();
    let tagged = ours.semaphore("{eu}/pool", 2).acquire().await;
    assert!(
        matches!(
            tagged,
            Err(AcquireError::Config(ConfigError::UnfitName { .. }))
        ),
        "{tagged:?}"
    );
}

async fn a_waiter_is_woken_by_a_release() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let guard = ours.lock("woken").acquire().await.unwrap();
    let lock = theirs.lock("woken").wait(BOUND);
    let waiter = tokio::spawn(async move { lock.acquire().await });
    for shard in 0..3 {
        let channel = format!("redisson_lock__channel:{}", key(shard, "woken"));
        let node = &cluster.nodes()[primary_of(&cluster, shard)];
        until("the waiter listens where the name lies", || {
            let told: (String, u32) = node.command(&["PUBSUB", "NUMSUB", &channel]);
            told.1 == 1
        })
        .await;
    }
    let released = Instant::now();
    guard.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap();
    // Without a wake-up, the waiter would sleep until the claims expire, after the lease and an equal margin.
    println!(
        "released; the next one served {:?} after that",
        released.elapsed()
    );
    assert!(released.elapsed() < LONGEST);
    next.release().await.unwrap();
}

async fn every_kind_of_lock_works_on_shards() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let one = ours.read("rw").acquire().await.unwrap();
    let other = theirs.read("rw").acquire().await.unwrap();
    assert!(theirs.write("rw").try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
    other.release().await.unwrap();
    let writer = theirs.write("rw").wait(BOUND).acquire().await.unwrap();
    assert!(ours.read("rw").try_acquire().await.unwrap().is_none());
    writer.extend(LONGEST).await.unwrap();
    writer.release().await.unwrap();

    let both = ours.all(["a", "b"]).acquire().await.unwrap();
    assert!(theirs.lock("b").try_acquire().await.unwrap().is_none());
    until_renewed(&both).await;
    both.release().await.unwrap();

    let owner = ours.owner();
    let outer = owner.lock("entered").acquire().await.unwrap();
    let inner = owner.lock("entered").acquire().await.unwrap();
    assert_eq!(outer.fencing_token(), inner.fencing_token());
    outer.release().await.unwrap();
    assert!(
        theirs
            .lock("entered")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    inner.release().await.unwrap();

    let error = ours.fair("f").acquire().await.unwrap_err();
    assert!(error.to_string().contains("needs one node"), "{error}");
}

async fn operators_see_and_free_names() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let guard = ours.lock("seen").acquire().await.unwrap();
    until_on_all(&cluster, "seen", &guard).await;
    let owner = guard.owner_id().to_string();
    let seen = theirs.inspect("seen").await.unwrap();
    assert_eq!(seen.summary(), Summary::Held { owner, nodes: 3 });
    // Each shard is identified by its tag.
    for tag in TAGS {
        assert!(seen.to_string().contains(tag), "{seen}");
    }
    theirs.force_release("seen").await.unwrap();
    assert!(claimed_on(&cluster, "seen", &guard).is_empty());
    tokio::time::timeout(Duration::from_secs(10), guard.lost())
        .await
        .unwrap();
}
