//! The interface to the environment: a monotonic clock, timers, tasks and randomness.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use quorlock_core::time::Time;

/// A task to run in the background, or a pause.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The source of time, pauses, background tasks and randomness of a [`StoreTransport`](crate::StoreTransport).
///
/// Tokio's is the default. A simulator can provide its own.
pub trait StoreRuntime: Send + Sync + fmt::Debug + 'static {
    /// Reads the monotonic clock. It must never be fast by more than 1 %: on a store without a clock, a claim ends when
    /// this clock has shown its whole lease. It need not count the time during which the machine was suspended.
    fn now(&self) -> Time;

    /// Returns a future that ends after `span`.
    fn sleep(&self, span: Duration) -> Task;

    /// Runs a task in the background.
    fn spawn(&self, task: Task);

    /// Returns 64 random bits.
    fn random(&self) -> u64;
}

/// Tokio's clock, timers and tasks. It must be used inside a tokio runtime with its time driver enabled.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tokio;

#[expect(clippy::disallowed_methods, reason = "this is the seam")]
impl StoreRuntime for Tokio {
    fn now(&self) -> Time {
        static ORIGIN: OnceLock<tokio::time::Instant> = OnceLock::new();
        let now = tokio::time::Instant::now();
        // With paused time, the clock of another runtime may show less than the origin.
        let origin = *ORIGIN.get_or_init(|| now);
        let head_start = Time::from_millis(1 << 40);
        match now.checked_duration_since(origin) {
            Some(after) => head_start + after,
            None => head_start - origin.duration_since(now),
        }
    }

    fn sleep(&self, span: Duration) -> Task {
        Box::pin(tokio::time::sleep(span))
    }

    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}
