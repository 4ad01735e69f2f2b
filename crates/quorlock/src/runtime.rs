//! The seam to the world: clocks, timers, tasks and randomness.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use quorlock_core::time::{Time, WallMillis};

/// A task to run in the background.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the locks get time, timers, background tasks and randomness from.
///
/// [`TokioRuntime`] is the default. Nothing in this crate reads a clock, waits, spawns or draws but through it, so a
/// simulator can put its own in place.
pub trait Runtime: Send + Sync + fmt::Debug + 'static {
    /// The monotonic clock. It should count the time the machine was suspended.
    fn now(&self) -> Time;

    /// The wall clock; used for nothing but fencing floors.
    fn wall_clock(&self) -> WallMillis;

    /// A new timer.
    fn timer(&self) -> Box<dyn Timer>;

    /// Runs a task in the background.
    fn spawn(&self, task: Task);

    /// 64 random bits.
    fn random(&self) -> u64;
}

/// One timer, set anew with every poll.
pub trait Timer: Send {
    /// Ready when the monotonic clock has reached `at`; otherwise the task is woken then. [`Time::NEVER`] never comes.
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()>;
}

/// Tokio's clock, timers and tasks. Where tokio's time is paused (in tests), so are the locks.
#[derive(Clone, Copy, Debug)]
pub struct TokioRuntime {
    origin: tokio::time::Instant,
}

impl TokioRuntime {
    /// A runtime whose clock begins now. Must be used inside a tokio runtime with its time driver enabled.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
    pub fn new() -> Self {
        TokioRuntime {
            origin: tokio::time::Instant::now(),
        }
    }
}

impl Default for TokioRuntime {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
impl Runtime for TokioRuntime {
    fn now(&self) -> Time {
        Time::ZERO + tokio::time::Instant::now().duration_since(self.origin)
    }

    fn wall_clock(&self) -> WallMillis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis());
        WallMillis(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(TokioTimer {
            origin: self.origin,
            set: None,
        })
    }

    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}

struct TokioTimer {
    origin: tokio::time::Instant,
    set: Option<(Time, Pin<Box<tokio::time::Sleep>>)>,
}

#[expect(clippy::disallowed_methods, reason = "this is the Runtime seam")]
impl Timer for TokioTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        if at == Time::NEVER {
            return Poll::Pending;
        }
        let instant = self.origin + at.since(Time::ZERO);
        let (set, sleep) = self
            .set
            .get_or_insert_with(|| (at, Box::pin(tokio::time::sleep_until(instant))));
        if *set != at {
            *set = at;
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
        let mut timer = runtime.timer();
        for at in [
            Time::from_millis(50),
            Time::from_millis(20),
            Time::from_millis(90),
        ] {
            poll_fn(|cx| timer.poll_until(cx, at)).await;
            assert!(at <= runtime.now());
        }
        assert!(runtime.now() < Time::ZERO + Duration::from_millis(95));
        let never = poll_fn(|cx| Poll::Ready(timer.poll_until(cx, Time::NEVER))).await;
        assert_eq!(never, Poll::Pending);
    }
}
