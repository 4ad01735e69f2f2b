//! Releases that fail, arrive too late, or are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quorlock::transport::{Cause, Request};
use quorlock::{EmbeddedNode, Guard, Locks, Lost, ReleaseError};
use tokio::time::sleep;

use crate::failures::support::{
    assert_empty, at_once, client, foreign, is_claimed_by, millis, name, nodes, poll_times, secs,
    settle,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// An unlock timed out, and the next lock of the same thread was a re-entry that no unlock ever ended: all others
/// starved. Here a release ends the hold when it begins, whatever its result, and the same owner begins a new hold.
#[tokio::test(start_paused = true)]
async fn story_05_after_a_failed_release_the_same_owner_does_not_reenter() {
    for failure in [Fate::Lost, Fate::ReplyLost, Fate::Refused(Cause::Busy)] {
        let node = EmbeddedNode::new();
        let way = Unreliable::to(&node);
        let locks = Locks::on_node(way.transport()).unwrap();
        let owner = locks.owner();
        let first = owner.lock("a").acquire().await.unwrap();
        let token = first.fencing_token();
        let fate = failure.clone();
        way.decide(move |_| fate.clone());
        let released = first.release().await;
        assert!(
            matches!(released, Err(ReleaseError::Unconfirmed { .. })),
            "{released:?} with {failure:?}"
        );
        way.heal();
        let second = at_once(owner.lock("a").acquire()).await.unwrap();
        assert_eq!(second.hold_count(), 1);
        assert!(token < second.fencing_token());
        assert!(is_claimed_by(&node, "a", &second, 1));
        second.release().await.unwrap();
        let other = Locks::on_node(node.clone()).unwrap();
        drop(at_once(other.lock("a").acquire()).await.unwrap());
    }
}

/// An unlock that worked was resent and reported "not locked by you". Here a release that arrives twice reports the
/// result of the first delivery.
#[tokio::test(start_paused = true)]
async fn story_06_a_release_that_arrives_twice_is_a_success() {
    let nodes = nodes(3);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap();
    for way in &ways {
        way.decide(|_| Fate::ArrivesTwice(millis(1)));
    }
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(guard.release().await, Ok(()));
    settle().await;
    assert_empty(&nodes);
}

/// A release whose answer is lost is reported as unconfirmed. It is not reported as "not held", although the release
/// that follows it finds nothing.
#[tokio::test(start_paused = true)]
async fn story_06_a_release_whose_answer_is_lost_does_not_say_not_held() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    let locks = Locks::on_node(way.transport()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    way.decide(|_| Fate::ReplyLost);
    let error = guard.release().await.unwrap_err();
    assert!(matches!(error, ReleaseError::Unconfirmed { .. }), "{error}");
    assert_empty(&[node]);
}

/// The release used a request's context, and was cancelled with it: the lock stayed. Here the release continues
/// whatever happens to the task that began it.
#[tokio::test(start_paused = true)]
async fn story_13_a_release_does_not_end_with_its_task() {
    for polls in 0..6 {
        let nodes = nodes(3);
        let locks = client(&nodes);
        let guard = locks.lock("a").acquire().await.unwrap();
        let mut releasing = Box::pin(guard.release());
        let _ = poll_times(&mut releasing, polls).await;
        drop(releasing);
        settle().await;
        assert_empty(&nodes);
    }
    for after in (0..12).map(millis) {
        let nodes = nodes(3);
        let lock = client(&nodes).lock("a");
        let task = tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let working = guard.while_held(async |_| sleep(millis(2)).await);
            working.await.unwrap().release.unwrap();
        });
        sleep(after).await;
        task.abort();
        let _ = task.await;
        settle().await;
        assert_empty(&nodes);
    }
}

/// Releasing an expired lock threw, and the error replaced the result of the work under it, or its panic. Here the
/// result is returned if the work was done in time, and only a loss in the middle of it is an error.
#[tokio::test(start_paused = true)]
async fn story_24_a_release_that_fails_does_not_take_the_result_away() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    let locks = Locks::on_node(way.transport()).unwrap();
    let lock = locks.lock("a").lease(secs(10));
    // The claim is removed behind the holder's back, or no node answers: the release reports it.
    for fate in [Fate::Arrives, Fate::Lost, Fate::Refused(Cause::OutOfMemory)] {
        let guard = lock.acquire().await.unwrap();
        let (taken, from) = (node.clone(), way.clone());
        let work = async move {
            taken.flush();
            from.decide(move |_| fate.clone());
            Err::<(), _>("what the work says")
        };
        let result = guard.while_held(async |_| work.await).await.unwrap();
        assert_eq!(result.output, Err("what the work says"));
        assert!(result.release.is_err(), "{result:?}");
        way.heal();
        settle().await;
    }
    let guard = lock.acquire().await.unwrap();
    let late = guard.while_held(async |_| sleep(secs(11)).await).await;
    assert_eq!(late, Err(Lost::Expired));
    let guard = lock.acquire().await.unwrap();
    sleep(secs(11)).await;
    let released = guard.release().await;
    let names = "a".to_owned();
    assert_eq!(released, Err(ReleaseError::NotHeld { names }));
}

/// A destructor that released an expired lock ended the whole process. Here dropping a guard sends nothing and never
/// panics: not when the lock is lost, not when the node is gone, not during a panic.
#[tokio::test(start_paused = true)]
async fn story_24_dropping_a_guard_never_panics() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let lock = locks.lock("a").lease(secs(10));
    let expired = lock.acquire().await.unwrap();
    sleep(secs(11)).await;
    drop(expired);
    let taken = lock.acquire().await.unwrap();
    node.put(&name("a"), foreign(), Some(secs(5)));
    drop(taken);
    settle().await;
    assert_eq!(node.held(&name("a")).map(|(held, _)| held), Some(foreign()));
    sleep(secs(6)).await;
    let panicked = tokio::spawn(async move {
        let _guard = lock.acquire().await.unwrap();
        panic!("on purpose");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    settle().await;
    assert_empty(std::slice::from_ref(&node));
    let unreachable = locks.lock("a").acquire().await.unwrap();
    node.kill();
    drop(unreachable);
    settle().await;
}

/// The same outside of a runtime, and after it: where nothing can be spawned or awaited.
#[test]
fn story_24_dropping_a_guard_outside_of_a_runtime_does_not_panic() {
    let new_runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    let runtime = new_runtime();
    let node = runtime.block_on(async { EmbeddedNode::new().latency(millis(1)) });
    let take = || -> (Locks, Guard) {
        runtime.block_on(async {
            let locks = Locks::on_node(node.clone()).unwrap();
            let guard = locks.lock("a").acquire().await.unwrap();
            (locks, guard)
        })
    };
    let (_locks, guard) = take();
    drop(guard);
    runtime.block_on(settle());
    assert_empty(std::slice::from_ref(&node));
    // A release in progress, and a signal that a task waits for.
    let (_locks, guard) = take();
    let lost = guard.lost();
    let mut releasing = Box::pin(guard.release());
    runtime.block_on(async { poll_times(&mut releasing, 1).await });
    drop(releasing);
    runtime.block_on(settle());
    assert_empty(std::slice::from_ref(&node));
    drop(lost);
    let (locks, guard) = take();
    let other = locks.lock("a");
    let working = guard.while_held(async |_| std::future::pending::<()>().await);
    let mut waiting = Box::pin(async move { other.acquire().await });
    runtime.block_on(async {
        let polled = poll_times(&mut waiting, 3).await;
        assert!(polled.is_none());
    });
    drop(runtime);
    drop((waiting, working, locks));
}

/// A release that is never polled still releases: its guard is dropped with it.
#[tokio::test(start_paused = true)]
async fn a_release_that_is_never_polled_releases() {
    let nodes = nodes(3);
    let guard = client(&nodes).lock("a").acquire().await.unwrap();
    drop(guard.release());
    settle().await;
    assert_empty(&nodes);
}

/// The work under a lock panics: the lock is released at once.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_work_frees_the_lock() {
    let nodes = nodes(3);
    let lock = client(&nodes).lock("a");
    let ran = Arc::new(AtomicBool::new(false));
    let (at_work, locked) = (ran.clone(), lock.clone());
    let task = tokio::spawn(async move {
        let guard = locked.acquire().await.unwrap();
        let work = async {
            at_work.store(true, Ordering::SeqCst);
            panic!("on purpose")
        };
        guard.while_held(async |_| work.await).await
    });
    assert!(task.await.unwrap_err().is_panic());
    assert!(ran.load(Ordering::SeqCst));
    drop(at_once(lock.acquire()).await.unwrap());
}

/// A hanging minority of nodes does not delay a release.
#[tokio::test(start_paused = true)]
async fn a_hanging_minority_does_not_hold_a_release_up() {
    let nodes = nodes(5);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let guard = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap()
        .lock("a");
    let guard = guard.acquire().await.unwrap();
    settle().await;
    nodes[0].pause();
    nodes[1].pause();
    let began = tokio::time::Instant::now();
    guard.release().await.unwrap();
    assert!(began.elapsed() < millis(20));
    let freed = |way: &Unreliable| {
        let sent = way.take_sent();
        sent.iter().any(|r| matches!(r, Request::Release(_)))
    };
    assert!(ways.iter().all(freed), "all of them are asked");
    nodes[0].resume();
    nodes[1].resume();
    settle().await;
    assert_empty(&nodes);
}

/// A's acquire of the third member is refused, as B has it, and the refusal is slow. B releases, A's watchdog
/// re-acquires the member, and only then the refusal arrives. The watchdog's claim must still be released.
#[tokio::test(start_paused = true)]
async fn a_release_goes_to_a_member_whose_refusal_was_late() {
    let nodes = nodes(3);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let builder = || Locks::builder().trust_fresh_nodes().watchdog_lease(secs(3));
    let locks = builder()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap();
    let third = builder().on_nodes([nodes[2].clone()]).unwrap();
    let other = third.lock("a").acquire().await.unwrap();
    let mut acquires = 0;
    ways[2].decide(move |request| match request {
        Request::Acquire(_) => {
            acquires += 1;
            if acquires == 1 {
                Fate::ReplyLate(millis(1_900))
            } else {
                Fate::Arrives
            }
        }
        _ => Fate::Arrives,
    });
    let guard = locks.lock("a").acquire().await.unwrap();
    sleep(millis(500)).await;
    other.release().await.unwrap();
    sleep(secs(3)).await;
    assert!(is_claimed_by(&nodes[2], "a", &guard, 1));
    guard.release().await.unwrap();
    settle().await;
    assert_empty(&nodes);
}

/// The reply to A's acquire of the third member is lost, and its watchdog's acquires are refused there. They have
/// left no claim, but the first one has.
#[tokio::test(start_paused = true)]
async fn a_release_goes_to_a_member_that_refused_only_the_second_acquire() {
    for cause in [Cause::Unreachable, Cause::OutOfMemory, Cause::Busy] {
        let nodes = nodes(3);
        let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
        let locks = Locks::builder().trust_fresh_nodes().watchdog_lease(secs(3));
        let locks = locks
            .on_nodes(ways.iter().map(Unreliable::transport))
            .unwrap();
        let mut acquires = 0;
        ways[2].decide(move |request| match request {
            Request::Acquire(_) => {
                acquires += 1;
                if acquires == 1 {
                    Fate::ReplyLost
                } else {
                    Fate::Refused(cause)
                }
            }
            _ => Fate::Arrives,
        });
        let guard = locks.lock("a").acquire().await.unwrap();
        sleep(secs(6)).await;
        assert!(is_claimed_by(&nodes[2], "a", &guard, 1));
        guard.release().await.unwrap();
        settle().await;
        assert_empty(&nodes);
    }
}
