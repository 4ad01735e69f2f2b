//! Tests slots of shards that move to other primaries.

use quorlock::{ConfigError, ConnectError};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::server_tests;
use quorlock_tests::clients::until_renewed;

use super::stage::{
    LONGEST, TAGS, claimed_on, cluster, counts, primary_of, shards, until_on_all, use_until_counts,
    watching,
};

server_tests![two_shards_on_one_primary_are_told_and_count_once];

/// Moves the slot of shard 0 to the primary of shard 1, and back.
async fn two_shards_on_one_primary_are_told_and_count_once() {
    let cluster = cluster().await;
    let (ours, theirs) = (shards(&cluster).await, shards(&cluster).await);
    let guard = ours.lock("held").acquire().await.unwrap();
    until_on_all(&cluster, "held", &guard).await;
    let [from, to, third] = [0, 1, 2].map(|shard| primary_of(&cluster, shard));
    let slot = cluster.slot_of(TAGS[0]);
    tokio::task::block_in_place(|| cluster.move_slot(slot, from, to));
    // The claims have moved, but the process has not: the marker names the process that they came from.
    assert_eq!(claimed_on(&cluster, "held", &guard), [0, 1, 2]);
    assert!(!counts(&cluster, 0));
    until_renewed(&guard).await;
    assert!(
        theirs
            .lock("held")
            .try_acquire()
            .await
            .unwrap_or(None)
            .is_none()
    );

    a_new_client_is_told_which_slot_to_move(&cluster).await;

    // Existing clients watch the process, and notice that they already know it.
    let asking = ours.lock("asks");
    use_until_counts(&cluster, 0, &asking).await;
    for _ in 0..3 {
        asking.acquire().await.unwrap().release().await.unwrap();
    }
    // Two tags on one primary are one vote. With that primary alone, there is no majority.
    cluster.nodes()[third].pause();
    let refused = ours.lock("free").try_acquire().await;
    cluster.nodes()[third].resume();
    let refused = refused.unwrap_err();
    assert!(refused.to_string().contains("the same server"), "{refused}");
    assert!(guard.is_held());

    // When the slot is back at the old node, it is watched again, and then it counts.
    tokio::task::block_in_place(|| cluster.move_slot(slot, to, from));
    use_until_counts(&cluster, 0, &asking).await;
    let used = asking.acquire().await.unwrap();
    used.release().await.unwrap();
    cluster.nodes()[third].pause();
    let granted = ours.lock("free").acquire().await;
    cluster.nodes()[third].resume();
    granted.unwrap().release().await.unwrap();
    assert!(guard.is_held());
    until_renewed(&guard).await;
    guard.release().await.unwrap();
}

/// The error names the slot to move, and the shards to which it must not move.
async fn a_new_client_is_told_which_slot_to_move(cluster: &Cluster) {
    let connected = watching(LONGEST)
        .majority_of_shards(cluster.address(), 3)
        .await;
    let error = connected.unwrap_err();
    let ConnectError::Config(ConfigError::SameShard {
        together, slots, ..
    }) = &error
    else {
        panic!("{error}")
    };
    assert_eq!(together, &[2_730, 8_192]);
    assert_eq!(slots, &[2_730, 8_192, 13_653]);
    println!("{error}");
}
