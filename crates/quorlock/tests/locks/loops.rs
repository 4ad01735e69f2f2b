//! Tasks that hold a lock for many steps, around `select!`, in virtual time.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use quorlock::{EmbeddedNode, Guard, Locks, Lost};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, sleep};

const LEASE: Duration = Duration::from_secs(10);

async fn held() -> (EmbeddedNode, Locks, Guard) {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    (node, locks, guard)
}

/// A worker that runs one job after another, and sometimes something else. Returns how it ended, and counts the jobs
/// in `done`.
async fn work(guard: &Guard, mut jobs: mpsc::Receiver<Duration>, done: &AtomicU32) -> Lost {
    let mut lost = guard.lost();
    let mut beat = tokio::time::interval(Duration::from_millis(300));
    loop {
        let step = tokio::select! {
            biased;
            lost = &mut lost => return lost,
            Some(takes) = jobs.recv() => takes,
            _ = beat.tick() => continue,
        };
        let step = async {
            sleep(step).await;
            done.fetch_add(1, Ordering::Relaxed);
        };
        if let Err(lost) = guard.run_until_lost(step).await {
            return lost;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_works_for_many_leases_and_ends_in_the_middle_of_the_job_at_which_the_lock_is_lost()
{
    let (node, _locks, guard) = held().await;
    let (jobs, queue) = mpsc::channel(200);
    for _ in 0..100 {
        jobs.send(Duration::from_secs(1)).await.unwrap();
    }
    // This job takes longer than the lease, and the node goes down in the middle of it.
    jobs.send(Duration::from_secs(600)).await.unwrap();
    let done = AtomicU32::new(0);
    let began = Instant::now();
    let gone = async {
        sleep(Duration::from_secs(150)).await;
        node.pause();
        std::future::pending::<Lost>().await
    };
    let ended = tokio::select! {
        ended = work(&guard, queue, &done) => ended,
        ended = gone => ended,
    };
    assert_eq!(ended, Lost::Unreachable);
    assert_eq!(done.load(Ordering::Relaxed), 100);
    let took = began.elapsed();
    assert!(
        Duration::from_secs(150) < took && took < Duration::from_secs(190),
        "{took:?}"
    );
    assert!(!guard.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_is_made_anew_in_each_step_misses_nothing() {
    let (node, _locks, guard) = held().await;
    let mut steps = 0;
    let ended = loop {
        tokio::select! {
            lost = guard.lost() => break lost,
            () = sleep(Duration::from_millis(50)) => steps += 1,
        }
        if steps == 1_000 {
            node.flush();
        }
    };
    assert_eq!(ended, Lost::Taken);
    assert!(1_000 <= steps);
}

#[tokio::test(start_paused = true)]
async fn a_step_leaves_the_guard_which_releases_the_lock_afterwards() {
    let (node, locks, guard) = held().await;
    let token = guard.run_until_lost(async { guard.fencing_token() }).await;
    assert_eq!(token, Ok(guard.fencing_token()));
    assert!(guard.is_held());
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    assert_eq!(node.names(), []);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_dropped_early_drops_its_work_and_holds_the_lock() {
    let (_node, locks, guard) = held().await;
    let work = Arc::new(());
    let kept = work.clone();
    tokio::select! {
        ended = guard.run_until_lost(async move { std::future::pending::<()>().await; drop(kept) }) => panic!("{ended:?}"),
        () = sleep(LEASE * 10) => {}
    }
    assert_eq!(Arc::strong_count(&work), 1);
    assert!(guard.is_held());
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
}

/// The last poll took longer than the lease, so its output was not protected.
#[tokio::test(start_paused = true)]
async fn a_step_that_ends_too_late_is_an_error() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node).unwrap();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    let mut late = pin!(advance(LEASE));
    let step = poll_fn(|cx| {
        // The clock advances during the first poll, so the rest must be ready at once.
        let _ = late.as_mut().poll(cx);
        Poll::Ready(7)
    });
    assert_eq!(guard.run_until_lost(step).await, Err(Lost::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_task_without_the_guard_ends_with_the_lock_whether_it_is_lost_or_released() {
    let (_node, locks, guard) = held().await;
    let lost = guard.lost();
    let other = lost.clone();
    let done = tokio::spawn(async move { lost.run_until_lost(async { 7 }).await });
    assert_eq!(done.await.unwrap(), Ok(7));
    let waits = tokio::spawn(async move { other.run_until_lost(sleep(LEASE * 100)).await });
    sleep(Duration::from_secs(1)).await;
    guard.release().await.unwrap();
    assert_eq!(waits.await.unwrap(), Err(Lost::Released));
    drop(locks);
}

/// Two clones that wait both learn of the loss, and one that is dropped does not take the other's place.
#[tokio::test(start_paused = true)]
async fn each_clone_of_a_signal_is_told() {
    let (node, _locks, guard) = held().await;
    let mut lost = guard.lost();
    let pending = poll_fn(|cx| Poll::Ready(Pin::new(&mut lost).poll(cx).is_pending()));
    assert!(pending.await);
    let other = lost.clone();
    drop(other.clone());
    node.flush();
    assert_eq!(other.await, Lost::Taken);
    assert_eq!((&mut lost).await, Lost::Taken);
    assert_eq!(lost.await, Lost::Taken, "it stays ready");
}
