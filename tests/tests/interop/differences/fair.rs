//! The queue of a fair lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorlock::runtime::{Task, Time, Timer, TokioRuntime, WallMillis};
use quorlock::{AcquireError, Locks, RetryPolicy};
use quorlock_testbed::wait::{BOUND, until};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::super::cases::{SOON, wait_for_it};
use super::super::mode::Mode;
use super::super::party::{Party, Released};
use super::super::stage::{LONG, Stage, WATCHDOG, locks_at, servers, settings};

/// The longest time for which our waiters in the second test sleep before they try again.
const ASKS_AGAIN: Duration = Duration::from_millis(300);

/// Redisson judges waiters by the clock of the client that sends the request, so a client whose clock is ahead drops the
/// others. (A test of this would need a JVM with a wrong clock.) Our scripts use the node's clock.
pub(super) async fn w6_a_waiter_with_a_clock_of_its_own(stage: Stage) {
    let mut holder = stage.jvm(Mode::Fair).await;
    holder.acquire(LONG).await;
    let first = tokio::spawn(wait_for_it(stage.jvm(Mode::Fair).await));
    until("the first one waits", || stage.waiters() == 1).await;
    let ours = Party::rust(
        &locks_with_a_clock_that_is_ahead().await,
        Mode::Fair,
        &stage.name,
    );
    let second = tokio::spawn(wait_for_it(ours));
    until("the second one waits", || stage.waiters() == 2).await;
    assert_eq!(holder.release().await, Released::Yes);
    let (mut first, _) = timeout(BOUND, first).await.unwrap().unwrap();
    assert_eq!(stage.waiters(), 1);
    assert!(!second.is_finished());
    assert_eq!(first.release().await, Released::Yes);
    let (mut second, _) = timeout(BOUND, second).await.unwrap().unwrap();
    assert_eq!(second.release().await, Released::Yes);
}

/// A dead waiter of ours delays the waiters behind it. Another waiter of ours drops it when its place has expired. Waiters
/// of Redisson wait for their own time-out of 5 minutes, since 3.32 without a pause.
pub(super) async fn a_waiter_that_is_dead(stage: Stage) {
    let mut holder = stage.jvm(Mode::Fair).await;
    holder.acquire(LONG).await;
    let dead = ours_that_waits(&stage);
    until("the first one waits", || stage.waiters() == 1).await;
    let second = tokio::spawn(wait_for_it(stage.jvm(Mode::Fair).await));
    until("the second one waits", || stage.waiters() == 2).await;
    let living = ours_that_waits(&stage);
    until("the third one waits", || stage.waiters() == 3).await;
    dead.shutdown_background();
    let released = Instant::now();
    assert_eq!(holder.release().await, Released::Yes);
    let (mut second, entered) = timeout(BOUND, second).await.unwrap().unwrap();
    assert_eq!(stage.waiters(), 1);
    assert!(entered < released + WATCHDOG + ASKS_AGAIN + SOON);
    assert_eq!(second.release().await, Released::Yes);
    until("the third one has it", || stage.waiters() == 0).await;
    living.shutdown_background();
}

/// A plain lock has the same claim. Redisson's plain lock overtakes the queue. Ours is refused while there is a queue.
pub(super) async fn a_plain_lock_beside_the_queue(stage: Stage) {
    let mut holder = stage.jvm(Mode::Fair).await;
    holder.acquire(LONG).await;
    let waiting = tokio::spawn(wait_for_it(stage.jvm(Mode::Fair).await));
    until("there is a waiter", || stage.waiters() == 1).await;
    let ours = locks_at(Mode::Fair.addresses()).await;
    let refused = ours.lock(&stage.name).try_acquire().await.unwrap_err();
    assert!(
        matches!(refused, AcquireError::OtherMode { .. }),
        "{refused}"
    );
    assert_eq!(holder.release().await, Released::Yes);
    let (mut waiter, _) = timeout(BOUND, waiting).await.unwrap().unwrap();
    assert_eq!(waiter.release().await, Released::Yes);
}

/// A client of ours in a separate runtime, so that it can die without a release.
fn ours_that_waits(stage: &Stage) -> Runtime {
    let runtime = Runtime::new().unwrap();
    let name = stage.name.clone();
    runtime.spawn(async move {
        let retry = RetryPolicy::default().poll_cap(ASKS_AGAIN);
        let locks = settings()
            .retry(retry)
            .connect(servers()[0].address())
            .await;
        let mut party = Party::rust(&locks.unwrap(), Mode::Fair, &name);
        party.acquire(None).await;
        std::future::pending::<()>().await;
    });
    runtime
}

async fn locks_with_a_clock_that_is_ahead() -> Locks {
    let runtime = Arc::new(Ahead(TokioRuntime::new()));
    let settings = settings().runtime(runtime);
    settings.connect(servers()[0].address()).await.unwrap()
}

/// A runtime whose wall clock is ten minutes ahead.
#[derive(Debug)]
struct Ahead(TokioRuntime);

impl quorlock::runtime::Runtime for Ahead {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wall_clock(&self) -> WallMillis {
        WallMillis(self.0.wall_clock().0 + 10 * 60 * 1000)
    }

    fn timer(&self) -> Box<dyn Timer> {
        self.0.timer()
    }

    fn spawn(&self, task: Task) {
        self.0.spawn(task);
    }

    fn random(&self) -> u64 {
        self.0.random()
    }
}
