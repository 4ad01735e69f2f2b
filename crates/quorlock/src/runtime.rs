//! The interface to the environment: clocks, timers, tasks and randomness.

mod suspended;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use quorlock_core::time::{Time, WallMillis};

/// A task to run in the background.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The source of time, timers, background tasks and randomness.
///
/// [`TokioRuntime`] is the default. This crate reads clocks, waits, spawns and draws random numbers only through this
/// trait, so a simulator can provide its own.
pub trait Runtime: Send + Sync + fmt::Debug + 'static {
    /// Reads the monotonic clock. It should count the time during which the machine was suspended.
    fn now(&self) -> Time;

    /// Reads the wall clock, which is used only for fencing floors.
    fn wall_clock(&self) -> WallMillis;

    /// Creates a timer.
    fn timer(&self) -> Box<dyn Timer>;

    /// Runs a task in the background.
    fn spawn(&self, task: Task);

    /// Returns 64 random bits.
    fn random(&self) -> u64;
}

/// One timer, which is set again by every poll.
pub trait Timer: Send {
    /// Ready when the monotonic clock has reached `at`; otherwise the task is woken then. [`Time::NEVER`] is never
    /// reached.
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()>;
}

/// Tokio's clock, timers and tasks; the clock also counts the time for which the machine was suspended.
///
/// The clocks of tokio and of the standard library do not count the time during which a Linux machine is suspended,
/// but nodes do. On Linux and Android the difference between `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC` is added. On
/// Windows the clock of the standard library counts suspended time by itself. **On macOS and the BSDs suspended time
/// is not counted**: a holder that resumes there considers its lease valid until a node answers otherwise.
///
/// No timer counts suspended time. Holds are checked once a second and at every poll of
/// [`while_held`](crate::Guard::while_held), so a loss is reported within a second of resuming.
///
/// While tokio's time is paused, as in tests, the time of the locks is paused, too.
///
/// All values in a process show the same time: their clock has one zero, which lies before the start of the process.
#[derive(Clone, Copy, Default, Debug)]
#[non_exhaustive]
pub struct TokioRuntime;

/// What the clock showed when a runtime of the process was first used: one year. With paused time, a runtime can lag
/// behind that moment by the time since then, and its clock must not go below zero.
const HEAD_START: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// When the clock showed [`HEAD_START`], not counting suspended time; and what the system's clock showed then, in nanoseconds.
///
/// The process has one origin. With one per runtime, the clock of client A's older runtime would show a later time
/// than B's at the same moment. In a lock over both clients, an observation made on A's nodes would be compared with
/// a reading of B's clock.
#[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
fn origin() -> (Instant, u64) {
    static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();
    *ORIGIN.get_or_init(|| {
        // The system's clock is read behind the instant, so a reading may seem later by the time of one reading, some 50 ns. Of a
        // few pairs, take the one in which the thread was least interrupted.
        let pairs = (0..16).map(|_| (suspended::awake(), Instant::now(), suspended::awake()));
        let least = pairs.min_by_key(|(before, _, after)| after.saturating_sub(*before));
        least.map_or((Instant::now(), 0), |(_, instant, after)| (instant, after))
    })
}

impl TokioRuntime {
    /// Creates the default runtime. It must be used inside a tokio runtime with its time driver enabled.
    #[must_use]
    pub fn new() -> Self {
        origin();
        TokioRuntime
    }

    /// Reads the clock of tokio, which a test may pause.
    #[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
    fn instant() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    /// For how long the machine was suspended, and how long it was awake, in nanoseconds.
    fn reading() -> (u64, u64) {
        let (origin, shown) = origin();
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        suspended::before(|| {
            let instant = Self::instant();
            match instant.checked_duration_since(origin) {
                Some(after) => shown.saturating_add(nanos(after)),
                None => shown.saturating_sub(nanos(origin.duration_since(instant))),
            }
        })
    }

    /// The instant at which the clock shows this reading, not counting suspended time.
    fn moment(reading: Duration) -> Option<Instant> {
        let (origin, _) = origin();
        match reading.checked_sub(HEAD_START) {
            Some(after) => origin.checked_add(after),
            None => origin.checked_sub(HEAD_START.saturating_sub(reading)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
impl Runtime for TokioRuntime {
    fn now(&self) -> Time {
        let (suspended, awake) = Self::reading();
        let (_, shown) = origin();
        let since = suspended.saturating_add(awake);
        Time::ZERO
            + (HEAD_START + Duration::from_nanos(since)).saturating_sub(Duration::from_nanos(shown))
    }

    fn wall_clock(&self) -> WallMillis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        WallMillis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(TokioTimer { sleep: None })
    }

    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}

struct TokioTimer {
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

#[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
impl Timer for TokioTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        if at == Time::NEVER {
            return Poll::Pending;
        }
        // The time on tokio's clock, which does not count suspended time.
        let (suspended, _) = TokioRuntime::reading();
        let shown = at
            .since(Time::ZERO)
            .saturating_sub(Duration::from_nanos(suspended));
        let Some(instant) = TokioRuntime::moment(shown) else {
            // Not representable as an instant: it is long past, or is never reached.
            return match HEAD_START < shown {
                true => Poll::Pending,
                false => Poll::Ready(()),
            };
        };
        let instant = tokio::time::Instant::from_std(instant);
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(instant)));
        if sleep.deadline() != instant {
            sleep.as_mut().reset(instant);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_timer_fires_when_its_time_has_come_and_can_be_set_again() {
        let runtime = TokioRuntime::new();
        let began = runtime.now();
        let mut timer = runtime.timer();
        for millis in [50, 20, 90] {
            let at = began + Duration::from_millis(millis);
            poll_fn(|cx| timer.poll_until(cx, at)).await;
            assert!(at <= runtime.now());
        }
        assert!(runtime.now() < began + Duration::from_millis(95));
        poll_fn(|cx| timer.poll_until(cx, Time::ZERO)).await;
        let never = poll_fn(|cx| Poll::Ready(timer.poll_until(cx, Time::NEVER))).await;
        assert_eq!(never, Poll::Pending);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_counts_the_time_that_the_machine_was_suspended() {
        let runtime = TokioRuntime::new();
        let before = runtime.now();
        let mut timer = runtime.timer();
        let at = before + Duration::from_secs(30);
        let waits = poll_fn(|cx| Poll::Ready(timer.poll_until(cx, at))).await;
        assert_eq!(waits, Poll::Pending);
        suspended::pretended::suspend(Duration::from_secs(40));
        assert!(before + Duration::from_secs(40) <= runtime.now());
        let is_due = poll_fn(|cx| Poll::Ready(timer.poll_until(cx, at))).await;
        assert_eq!(is_due, Poll::Ready(()));
        // Clocks of one process agree, whenever they were made.
        assert!(before + Duration::from_secs(40) <= TokioRuntime::new().now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_was_set_after_the_machine_was_suspended_waits_no_longer_for_that() {
        let runtime = TokioRuntime::new();
        suspended::pretended::suspend(Duration::from_secs(40));
        let (at, began) = (runtime.now() + Duration::from_secs(5), tokio_now());
        let mut timer = runtime.timer();
        poll_fn(|cx| timer.poll_until(cx, at)).await;
        let waited = tokio_now() - began;
        assert!(waited < Duration::from_millis(5_010), "{waited:?}");
        assert!(at <= runtime.now());
    }

    #[expect(clippy::disallowed_methods, reason = "how long a test takes")]
    fn tokio_now() -> tokio::time::Instant {
        tokio::time::Instant::now()
    }

    /// A holder that was suspended for longer than its lease learns of the loss: at once when it checks, within a
    /// second when it waits.
    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_machine_was_suspended_for_longer_than_its_lease_has_lost() {
        let node = crate::EmbeddedNode::new();
        let locks = crate::Locks::on_node(node.clone()).unwrap();
        let sleeper = locks.lock("a").acquire().await.unwrap();
        let worker = locks.lock("b").acquire().await.unwrap();
        let work = worker.while_held(async |_| std::future::pending::<()>().await);
        let lost = sleeper.lost();
        assert!(sleeper.is_held());

        suspended::pretended::suspend(Duration::from_secs(30));
        assert!(!sleeper.is_held());
        let resumed = tokio_now();
        let (lost, work) = tokio::join!(lost, work);
        assert_eq!(lost, crate::Lost::Expired);
        assert_eq!(work, Err(crate::Lost::Expired));
        let told_after = tokio_now() - resumed;
        assert!(told_after <= Duration::from_millis(1_001), "{told_after:?}");
    }

    #[tokio::test]
    async fn the_clock_goes_on_and_never_back() {
        let runtime = TokioRuntime::new();
        let began = tokio_now();
        let first = runtime.now();
        let mut last = first;
        for _ in 0..10_000 {
            let now = runtime.now();
            assert!(last <= now);
            last = now;
        }
        assert!(last.since(first) < began.elapsed() + Duration::from_secs(1));
    }
}
