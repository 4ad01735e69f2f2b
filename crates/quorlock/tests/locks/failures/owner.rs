//! An owner whose locks are reentrant.

use quorlock::{AcquireError, EmbeddedNode, Lost};
use tokio::time::sleep;

use crate::failures::support::{
    assert_empty, at_once, client, is_claimed_by, name, nodes, poll_once, poll_times, secs, settle,
    take_away,
};

/// A re-entry is in progress when the only guard of the hold is released, and is then dropped. The watchdog would
/// renew a hold without guards for ever.
#[tokio::test(start_paused = true)]
async fn story_02_a_reentry_that_is_given_up_does_not_outlive_the_release() {
    for is_dropped in [false, true] {
        for polls in 0..3 {
            let nodes = nodes(1);
            let locks = client(&nodes);
            let owner = locks.owner();
            let outer = owner.lock("a").acquire().await.unwrap();
            let lock = owner.lock("a");
            let mut inner = Box::pin(async move { lock.acquire().await });
            assert!(poll_once(&mut inner).is_pending());
            if is_dropped {
                drop(outer);
            } else {
                outer.release().await.unwrap();
            }
            let _ = poll_times(&mut inner, polls).await;
            drop(inner);
            settle().await;
            assert_eq!(locks.held(), 0);
            assert_empty(&nodes);
            drop(at_once(client(&nodes).lock("a").acquire()).await.unwrap());
        }
    }
}

/// The same with a re-entry that fails, because its node is temporarily down.
#[tokio::test(start_paused = true)]
async fn story_02_a_reentry_that_fails_does_not_outlive_the_release() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let owner = locks.owner();
    let outer = owner.lock("a").acquire().await.unwrap();
    settle().await;
    for node in &nodes {
        node.pause();
    }
    let lock = owner.lock("a");
    let inner = tokio::spawn(async move { lock.acquire().await.map(drop) });
    settle().await;
    drop(outer);
    let error = inner.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
    for node in &nodes {
        node.resume();
    }
    settle().await;
    assert_eq!(locks.held(), 0);
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn a_reentry_keeps_the_token_and_the_claim() {
    let nodes = nodes(5);
    let owner = client(&nodes).owner();
    let outer = owner.lock("a").acquire().await.unwrap();
    let token = outer.fencing_token();
    for turn in 1..20 {
        let inner = owner.lock("a").try_acquire().await.unwrap().unwrap();
        assert_eq!(inner.fencing_token(), token);
        assert_eq!(inner.hold_count(), 2);
        settle().await;
        assert!(nodes.iter().all(|node| is_claimed_by(node, "a", &outer, 2)));
        if turn % 2 == 0 {
            inner.release().await.unwrap();
        } else {
            drop(inner);
        }
        settle().await;
        assert!(nodes.iter().all(|node| is_claimed_by(node, "a", &outer, 1)));
    }
    outer.release().await.unwrap();
    settle().await;
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn two_acquisitions_of_one_owner_at_the_same_time_both_enter() {
    let nodes = nodes(3);
    let owner = client(&nodes).owner();
    let (one, two) = (owner.lock("a"), owner.lock("a"));
    let (one, two) = tokio::join!(one.acquire(), two.acquire());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.hold_count(), two.hold_count()), (2, 2));
    assert_eq!(one.owner_id(), two.owner_id());
    drop((one, two));
    settle().await;
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn an_owner_does_not_wait_for_itself() {
    let nodes = nodes(3);
    let owner = client(&nodes).owner();
    let held = owner.all(["a", "b"]).acquire().await.unwrap();
    for lock in [owner.lock("b"), owner.all(["b", "c"])] {
        let error = at_once(lock.acquire()).await.unwrap_err();
        let AcquireError::Overlap { names, held } = &error else {
            panic!("{error}")
        };
        assert!(names.contains('b') && held == "b");
    }
    let beside = at_once(owner.lock("c").acquire()).await.unwrap();
    held.release().await.unwrap();
    let error = at_once(owner.all(["b", "c"]).acquire()).await;
    assert!(matches!(error, Err(AcquireError::Overlap { .. })));
    beside.release().await.unwrap();
    let both = at_once(owner.all(["b", "c"]).acquire()).await;
    both.unwrap().release().await.unwrap();
}

/// A lost hold is over. What its owner acquires next is a new hold, which guards of the old one neither use nor end.
#[tokio::test(start_paused = true)]
async fn the_guard_of_a_lost_hold_does_not_touch_the_new_one() {
    for is_released in [false, true] {
        let nodes = nodes(3);
        let owner = client(&nodes).owner();
        let lock = owner.lock("a");
        let old = lock.acquire().await.unwrap();
        let also_old = old.reenter().await.unwrap();
        settle().await;
        for node in &nodes {
            take_away(node, "a");
        }
        assert_eq!(old.lost().await, Lost::Taken);
        let new = at_once(lock.acquire()).await.unwrap();
        assert!(old.fencing_token() < new.fencing_token());
        assert_ne!(old.owner_id(), new.owner_id());
        assert_eq!(new.hold_count(), 1);
        assert!(!old.is_held() && new.is_held());
        assert!(old.reenter().await.is_err());
        if is_released {
            assert!(old.release().await.is_err());
            assert!(also_old.release().await.is_err());
        } else {
            drop((old, also_old));
        }
        sleep(secs(60)).await;
        assert!(new.is_held());
        assert!(nodes.iter().all(|node| is_claimed_by(node, "a", &new, 1)));
    }
}

/// An owner acquires its lock again while the release of its last hold is still in flight.
#[tokio::test(start_paused = true)]
async fn a_hold_that_is_being_released_is_not_entered() {
    let nodes = nodes(3);
    let owner = client(&nodes).owner();
    for _ in 0..10 {
        let old = owner.lock("a").acquire().await.unwrap();
        let id = old.owner_id();
        let mut releasing = Box::pin(old.release());
        let _ = poll_once(&mut releasing);
        let new = at_once(owner.lock("a").acquire()).await.unwrap();
        assert_ne!(new.owner_id(), id);
        drop(releasing);
        settle().await;
        assert!(nodes.iter().all(|node| is_claimed_by(node, "a", &new, 1)));
        new.release().await.unwrap();
    }
    settle().await;
    let left: Vec<_> = nodes.iter().map(EmbeddedNode::names).collect();
    assert!(left.iter().all(|names| !names.contains(&name("a"))));
}
