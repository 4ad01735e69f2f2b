//! Wake-ups that are lost, duplicated, or too early.

use quorlock::transport::Cause;
use quorlock::{EmbeddedNode, Locks};
use tokio::time::Instant;

use crate::failures::support::{at_once, client, foreign, millis, name, nodes, secs, settle};
use crate::failures::unreliable::{Fate, Unreliable, Wakes};

/// The message of an unlock was missed, and the waiter slept until the lease of the free lock had expired. Here no
/// waiter sleeps for longer than the poll cap.
#[tokio::test(start_paused = true)]
async fn story_11_a_missed_wake_up_costs_a_look_and_not_a_lease() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    way.wakes(Wakes::Lost);
    let holder = Locks::on_node(node).unwrap();
    let held = holder.lock("a").lease(secs(60)).acquire().await.unwrap();
    let lock = Locks::on_node(way.transport()).unwrap().lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    settle().await;
    held.release().await.unwrap();
    let released = Instant::now();
    drop(waiting.await.unwrap().unwrap());
    assert!(released.elapsed() <= secs(6), "{:?}", released.elapsed());
}

/// The lock was released after the refusal and before the subscription: the waiter was never woken. Here it tries
/// again once it is subscribed.
#[tokio::test(start_paused = true)]
async fn story_11_a_release_before_the_subscription_is_found() {
    let node = EmbeddedNode::new();
    node.put(&name("a"), foreign(), Some(secs(60)));
    let way = Unreliable::to(&node);
    let freed = node.clone();
    way.before_subscription(move || freed.flush());
    let began = Instant::now();
    let lock = Locks::on_node(way.transport()).unwrap().lock("a");
    lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(began.elapsed(), secs(0));
}

/// A duplicated wake-up causes one useless try, and lets no second owner in.
#[tokio::test(start_paused = true)]
async fn story_11_a_doubled_wake_up_lets_one_in() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    way.wakes(Wakes::ArriveTwice);
    let holder = Locks::on_node(node.clone()).unwrap();
    let held = holder.lock("a").acquire().await.unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let lock = Locks::on_node(way.transport()).unwrap().lock("a");
            tokio::spawn(async move { lock.acquire().await.unwrap() })
        })
        .collect();
    settle().await;
    held.release().await.unwrap();
    settle().await;
    let ended = waiters.iter().filter(|waiter| waiter.is_finished()).count();
    assert_eq!(ended, 1);
    for waiter in waiters {
        let guard = at_once(waiter).await.unwrap();
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}

/// A restart of the nodes ended the subscriptions, and they were not restored. Here a waiter tries again after every
/// gap.
#[tokio::test(start_paused = true)]
async fn story_11_a_gap_in_the_subscription_makes_waiters_look_again() {
    let nodes = nodes(3);
    let held = client(&nodes).lock("a").acquire().await.unwrap();
    let lock = client(&nodes).lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    settle().await;
    for node in &nodes {
        // It comes back without its keys, and reports nothing.
        node.kill();
        node.restart();
    }
    let guard = at_once(waiting).await.unwrap().unwrap();
    assert!(guard.is_held());
    drop(held);
    settle().await;
    assert!(guard.is_held());
}

/// A waiter of the process gets the lock and releases it while the next waiter's first request is in flight. The
/// request is refused by a claim that is gone when the refusal arrives, and the wake-up has arrived before it.
#[tokio::test(start_paused = true)]
async fn story_11_a_wake_up_that_overtakes_a_refusal_is_not_forgotten() {
    for many in [1, 3] {
        for held_for in (0..12).map(millis) {
            let nodes = nodes(many);
            let lock = client(&nodes).lock("a");
            let first = client(&nodes).lock("a").acquire().await.unwrap();
            let tasks: Vec<_> = (0..3)
                .map(|_| {
                    let lock = lock.clone();
                    tokio::spawn(async move {
                        let guard = lock.acquire().await.unwrap();
                        tokio::time::sleep(held_for).await;
                        guard.release().await.unwrap();
                    })
                })
                .collect();
            settle().await;
            first.release().await.unwrap();
            let released = Instant::now();
            for task in tasks {
                task.await.unwrap();
            }
            let took = released.elapsed();
            assert!(took < secs(1), "{took:?} for three holds of {held_for:?}");
        }
    }
}

/// Two of five nodes are down, and their errors arrive before the others' refusals. The lock is contended: a try
/// returns `None`, and an acquisition waits.
#[tokio::test(start_paused = true)]
async fn a_dead_minority_does_not_make_a_held_lock_an_error() {
    // Their answers arrive one after the other.
    let node = |place: u64| EmbeddedNode::new().latency(millis(2 * place));
    let nodes: Vec<_> = (1..=5).map(node).collect();
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    for way in &ways[..2] {
        way.decide(|_| Fate::Refused(Cause::Unreachable));
    }
    let held = client(&nodes).lock("a").acquire().await.unwrap();
    let lock = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap()
        .lock("a");
    assert!(lock.try_acquire().await.unwrap().is_none());
    let waiting = tokio::spawn(async move { lock.acquire().await });
    tokio::time::sleep(secs(60)).await;
    assert!(held.is_held() && !waiting.is_finished());
    held.release().await.unwrap();
    assert!(at_once(waiting).await.unwrap().unwrap().is_held());
}
