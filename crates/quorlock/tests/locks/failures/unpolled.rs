//! Futures that are neither polled nor dropped: a `&mut` future in a `select!`, a set of futures that is not polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};
use quorlock::{AcquireError, Guard, Lock};
use tokio::time::{Instant, sleep};

use crate::failures::support::{
    assert_empty, at_once, client, millis, nodes, poll_once, secs, settle,
};

type Acquiring = Pin<Box<dyn Future<Output = Result<Guard, AcquireError>> + Send>>;

/// An acquisition that was begun: its requests are sent, and it is not polled when their answers wake it.
fn begun(lock: &Lock) -> Acquiring {
    let lock = lock.clone();
    let mut acquiring: Acquiring = Box::pin(async move { lock.acquire().await });
    assert!(poll_once(&mut acquiring).is_pending());
    acquiring
}

fn in_a_task(lock: &Lock) -> tokio::task::JoinHandle<Result<Guard, AcquireError>> {
    let lock = lock.clone();
    tokio::spawn(async move { lock.acquire().await })
}

/// The leader of the waiters stops being polled while another client holds the lock.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_not_polled_does_not_keep_a_release_from_the_others() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let held = client(&nodes).lock("a").acquire().await.unwrap();
        let lock = client(&nodes).lock("a");
        let mut idle = begun(&lock);
        for _ in 0..5 {
            // It subscribes, tries again, and sleeps.
            settle().await;
            assert!(poll_once(&mut idle).is_pending());
        }
        let live = in_a_task(&lock);
        sleep(secs(3)).await;
        assert!(!live.is_finished());
        held.release().await.unwrap();
        let guard = at_once(live).await.unwrap().unwrap();
        assert!(guard.is_held());
        guard.release().await.unwrap();
        drop(idle);
        settle().await;
        assert_empty(&nodes);
    }
}

/// A grant to a future that is not polled passes to the next waiter.
#[tokio::test(start_paused = true)]
async fn a_grant_to_a_future_that_is_not_polled_passes_to_the_next() {
    for many in [1, 3] {
        for idle in [1, 2, 5] {
            let nodes = nodes(many);
            let lock = client(&nodes).lock("a");
            let idle: Vec<_> = (0..idle).map(|_| begun(&lock)).collect();
            settle().await;
            let began = Instant::now();
            let live = in_a_task(&lock);
            let guard = at_once(live).await.unwrap().unwrap();
            let took = began.elapsed();
            // Each waiter in front delays the next one a little.
            let patience = millis(200) * u32::try_from(idle.len()).unwrap();
            assert!(took <= patience + millis(50), "{took:?}");
            assert!(guard.is_held());
            drop(guard);
            drop(idle);
            settle().await;
            assert_empty(&nodes);
        }
    }
}

/// The process was granted the lock, but no task takes it. A waiter whose wait is over takes it itself.
#[tokio::test(start_paused = true)]
async fn a_short_wait_behind_a_future_that_is_not_polled_is_won() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let lock = client(&nodes).lock("a");
        let idle = begun(&lock);
        settle().await;
        let guard = lock.clone().wait(millis(20)).acquire().await.unwrap();
        assert!(guard.is_held());
        // The next waiter fails with contention.
        let error = lock.clone().wait(millis(20)).acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Contended { .. }), "{error}");
        drop((guard, idle));
        settle().await;
        assert_empty(&nodes);
    }
}

/// A future that was passed over waits again when it is polled, and gets the lock in its turn.
#[tokio::test(start_paused = true)]
async fn whoever_was_passed_over_gets_the_lock_when_it_comes_back() {
    let nodes = nodes(3);
    let lock = client(&nodes).lock("a");
    let idle = begun(&lock);
    settle().await;
    let first = at_once(in_a_task(&lock)).await.unwrap().unwrap();
    let back = tokio::spawn(idle);
    let last = in_a_task(&lock);
    settle().await;
    assert!(!back.is_finished() && !last.is_finished());
    first.release().await.unwrap();
    let second = at_once(back).await.unwrap().unwrap();
    second.release().await.unwrap();
    let third = at_once(last).await.unwrap().unwrap();
    third.release().await.unwrap();
    assert_empty(&nodes);
}

/// A `select!` whose other branch is slow, again and again.
#[tokio::test(start_paused = true)]
async fn a_select_that_looks_at_its_lock_now_and_then_stops_nobody_else() {
    let nodes = nodes(3);
    let lock = client(&nodes).lock("a");
    let held = client(&nodes).lock("a").acquire().await.unwrap();
    let seldom = lock.clone();
    let seldom = tokio::spawn(async move {
        let mut acquiring = std::pin::pin!(seldom.acquire());
        loop {
            tokio::select! {
                biased;
                guard = &mut acquiring => break guard,
                () = sleep(millis(1)) => {}
            }
            // Busy with something else.
            sleep(secs(20)).await;
        }
    });
    settle().await;
    let others: Vec<_> = (0..10).map(|_| in_a_task(&lock)).collect();
    settle().await;
    held.release().await.unwrap();
    let began = Instant::now();
    for other in others {
        other.await.unwrap().unwrap().release().await.unwrap();
    }
    assert!(began.elapsed() < secs(2), "{:?}", began.elapsed());
    assert!(seldom.await.unwrap().unwrap().is_held());
}

/// A set of futures of which only one is awaited.
#[tokio::test(start_paused = true)]
async fn a_set_that_is_not_driven_stops_nobody_else() {
    let nodes = nodes(1);
    let lock = client(&nodes).lock("a");
    let mut set: FuturesUnordered<_> = (0..8).map(|_| lock.acquire()).collect();
    let first = set.next().await.unwrap().unwrap();
    drop(first);
    // The next future of the set is granted the lock, and is not polled.
    let guard = at_once(in_a_task(&lock)).await.unwrap().unwrap();
    assert!(guard.is_held());
}

/// Its grants are released when the client is closed.
#[tokio::test(start_paused = true)]
async fn closing_gives_back_what_a_future_that_is_not_polled_was_granted() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let mut idle = begun(&locks.lock("a"));
    settle().await;
    locks.close().await;
    settle().await;
    assert_empty(&nodes);
    let outcome = std::future::poll_fn(|cx| idle.as_mut().poll(cx)).await;
    assert!(matches!(outcome, Err(AcquireError::Closed)));
}

/// A waiter with another lease is in another queue, and a try in none: for both of them the grants of the idle future
/// are released.
#[tokio::test(start_paused = true)]
async fn a_future_that_is_not_polled_keeps_nothing_from_another_lease_or_a_try() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let lock = client(&nodes).lock("a");
        let mut idle = begun(&lock);
        settle().await;
        assert!(lock.try_acquire().await.unwrap().is_none());
        sleep(millis(300)).await;
        let guard = lock
            .try_acquire()
            .await
            .unwrap()
            .expect("it was given back");
        drop(guard);
        settle().await;
        assert!(poll_once(&mut idle).is_pending());
        settle().await;
        let other = in_a_task(&lock.clone().lease(secs(7)));
        let guard = at_once(other).await.unwrap().unwrap();
        assert!(guard.is_held());
        // It continues when it is polled.
        let back = tokio::spawn(idle);
        settle().await;
        guard.release().await.unwrap();
        assert!(at_once(back).await.unwrap().unwrap().is_held());
        settle().await;
        assert_empty(&nodes);
    }
}

/// A leader that is polled whenever it is woken keeps its place, even if the keeper looks just when it is woken.
#[tokio::test(start_paused = true)]
async fn a_leader_that_comes_when_it_is_woken_keeps_its_place() {
    for wait in (80..130).map(millis) {
        let nodes = nodes(1);
        let held = client(&nodes).lock("a").acquire().await.unwrap();
        let lock = client(&nodes).lock("a");
        let first = in_a_task(&lock);
        settle().await;
        let second = in_a_task(&lock);
        sleep(wait).await;
        held.release().await.unwrap();
        let guard = at_once(first).await.unwrap().unwrap();
        assert!(!second.is_finished(), "{wait:?}");
        drop(guard);
        assert!(at_once(second).await.unwrap().is_ok());
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Told(AtomicUsize);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A leader on another thread may be in a poll when it is passed over. It must be woken, or it would wait in a queue
/// that it has left.
#[tokio::test(start_paused = true)]
async fn whoever_is_passed_over_is_woken() {
    let nodes = nodes(1);
    let lock = client(&nodes).lock("a");
    let told = Arc::new(Told::default());
    let waker = Waker::from(told.clone());
    let mut late = Box::pin(lock.acquire());
    let polled = late.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let other = in_a_task(&lock);
    sleep(millis(99)).await;
    let before = told.0.load(Ordering::Relaxed);
    assert!(0 < before && !other.is_finished());
    let guard = at_once(other).await.unwrap().unwrap();
    assert_eq!(told.0.load(Ordering::Relaxed), before + 1);
    drop(guard);
}

/// An owner enters a hold beside another future of the owner, which is about to enter it and is not polled.
#[tokio::test(start_paused = true)]
async fn an_entry_that_is_not_polled_keeps_no_other_entry_out() {
    for many in [1, 3] {
        let owner = client(&nodes(many)).owner();
        let held = owner.lock("a").acquire().await.unwrap();
        let idle = begun(&owner.lock("a"));
        settle().await;
        let again = at_once(owner.lock("a").acquire()).await.unwrap();
        assert!(held.is_held() && again.is_held());
        drop(idle);
    }
}

/// The turn of an owner passes to an acquisition whose future is not polled, and from there to the next.
#[tokio::test(start_paused = true)]
async fn a_turn_that_passes_to_a_future_that_is_not_polled_passes_on() {
    let nodes = nodes(1);
    let owner = client(&nodes).owner();
    let first = begun(&owner.lock("a"));
    let idle = begun(&owner.lock("a"));
    drop(first);
    settle().await;
    assert_empty(&nodes);
    let guard = at_once(in_a_task(&owner.lock("a"))).await.unwrap().unwrap();
    drop((guard, idle));
}

/// An owner's acquisition has the turn, and stops being polled while another client holds the lock, or when it has
/// been granted. The owner's other acquisitions continue in every mode, and so does a try. It gets the lock when it
/// is polled again.
#[tokio::test(start_paused = true)]
async fn an_owners_future_that_is_not_polled_stops_no_other_of_that_owner() {
    for many in [1, 3] {
        for is_free in [true, false] {
            let nodes = nodes(many);
            let held = match is_free {
                true => None,
                false => Some(client(&nodes).lock("a").acquire().await.unwrap()),
            };
            let owner = client(&nodes).owner();
            let mut idle = begun(&owner.lock("a"));
            for _ in 0..5 {
                settle().await;
                if !is_free {
                    assert!(poll_once(&mut idle).is_pending());
                }
            }
            let live = in_a_task(&owner.lock("a"));
            let both = in_a_task(&owner.all(["a", "b"]));
            settle().await;
            drop(held);
            let guard = at_once(live).await.unwrap().unwrap();
            let overlapping = at_once(both).await.unwrap();
            assert!(matches!(overlapping, Err(AcquireError::Overlap { .. })));
            // It enters the hold that its owner has by now.
            let back = at_once(tokio::spawn(idle)).await.unwrap().unwrap();
            assert_eq!(guard.hold_count(), 2);
            drop((guard, back));
            settle().await;
            assert_empty(&nodes);
            let idle = begun(&owner.lock("a"));
            settle().await;
            assert!(owner.lock("a").try_acquire().await.unwrap().is_none());
            sleep(millis(300)).await;
            assert!(owner.lock("a").try_acquire().await.unwrap().is_none());
            sleep(millis(300)).await;
            assert!(owner.lock("a").try_acquire().await.unwrap().is_some());
            drop(idle);
        }
    }
}

/// A reader does not wait for a writer of the same client that was granted the lock and is not polled; nor a writer
/// for such a reader, nor a fair waiter for a plain one.
#[tokio::test(start_paused = true)]
async fn a_future_that_is_not_polled_keeps_nothing_from_another_mode() {
    for many in [1, 3] {
        let locks = client(&nodes(many));
        let pairs = [
            (locks.write("a"), locks.read("a")),
            (locks.read("a"), locks.write("a")),
            (locks.read("a").lease(secs(7)), locks.write("a")),
        ];
        for (idle, live) in pairs {
            let mut idle = begun(&idle);
            settle().await;
            let guard = at_once(in_a_task(&live)).await.unwrap().unwrap();
            assert!(poll_once(&mut idle).is_pending());
            settle().await;
            assert!(poll_once(&mut idle).is_pending());
            guard.release().await.unwrap();
            let back = at_once(tokio::spawn(idle)).await.unwrap().unwrap();
            back.release().await.unwrap();
        }
    }
    let locks = client(&nodes(1));
    let _idle = begun(&locks.lock("a"));
    settle().await;
    // The release of a plain lock wakes no fair waiter, which tries again after a while.
    let fair = locks.fair("a").wait(secs(6)).acquire().await;
    assert!(fair.unwrap().is_held());
}
