//! The one place where this crate reads a clock, sleeps and spawns.
//!
//! The adapter owns its sockets and the tasks that drive them. It therefore uses tokio's timer directly, and
//! not the `Runtime` trait, which is for the algorithm. A paused tokio clock, as in a simulated network,
//! applies to the adapter as well.

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;

use crate::sync::task;

pub(crate) use tokio::time::{Instant, Sleep};

/// A hundred years. Longer spans are cut to this length, so that adding a span to a time does not overflow.
pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "bounds calls, decides nothing about leases"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Both clocks at one moment: that of tokio, which a test may pause, and that of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    tokio: Instant,
    system: std::time::Instant,
}

impl Clocks {
    #[expect(
        clippy::disallowed_methods,
        reason = "explains a time-out, decides nothing"
    )]
    pub(crate) fn now() -> Self {
        // The system's clock is read first here and last below: a thread that is suspended between two reads does not
        // make tokio's clock look ahead.
        let system = std::time::Instant::now();
        Clocks {
            tokio: now(),
            system,
        }
    }

    /// Whether tokio's clock has run ahead of the system's since then. A paused clock does, because it jumps to the next
    /// timer when all tasks wait. Otherwise the two are the same clock.
    pub(crate) fn is_ahead(&self) -> bool {
        let tokio = now().saturating_duration_since(self.tokio);
        self.system.elapsed() + Duration::from_millis(1) < tokio
    }
}

/// The clocks of this machine at one moment: the time since 1970, and a monotonic time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) wall: Duration,
    pub(crate) steady: Duration,
}

impl Reading {
    #[expect(
        clippy::disallowed_methods,
        reason = "compares the clock of a server with this machine's, decides nothing"
    )]
    pub(crate) fn now() -> Self {
        static ZERO: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        let zero = *ZERO;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        Reading {
            wall: wall.unwrap_or_default(),
            steady: zero.elapsed(),
        }
    }
}

/// Returns the output of `future`, or `None` if the deadline comes first.
/// Not an `async fn`, which would reserve memory for the future twice.
pub(crate) fn by<F: Future>(
    deadline: Instant,
    future: F,
) -> impl Future<Output = Option<F::Output>> {
    tokio::time::timeout_at(deadline, future).map(Result::ok)
}

/// Sleeps until the deadline.
#[expect(
    clippy::disallowed_methods,
    reason = "delays connection attempts, decides nothing about leases"
)]
pub(crate) fn sleep_until(deadline: Instant) -> Sleep {
    tokio::time::sleep_until(deadline)
}

/// Spawns a task of the adapter: one that drives a socket, or makes a connection that several callers wait for.
#[expect(
    clippy::disallowed_methods,
    reason = "sockets are driven by tasks of the tokio runtime they are registered with"
)]
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> task::JoinHandle<()> {
    task::spawn(work)
}

/// Runs a blocking operation, such as reading a file, on a thread for blocking work. `None` if the runtime was shut
/// down.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// The pause after `failures` failed connection attempts in a row (at least one): 50 ms, doubling up to 1 s. Without
/// it, every call to a server that is down would begin an attempt and wait for its failure.
pub(crate) fn delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(5);
    Duration::from_millis(50 << doublings).min(Duration::from_secs(1))
}

/// Runs a test in the context of a tokio runtime, which tokio's timers need. Its clock is paused.
#[cfg(all(test, shuttle))]
pub(crate) fn with_timers(test: impl FnOnce()) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let tokio = builder.enable_time().start_paused(true).build();
    // Never dropped: the drop would wake tasks of a schedule that has failed.
    let tokio = Box::leak(Box::new(tokio.expect("a runtime")));
    let _entered = tokio.enter();
    test();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_second() {
        let millis: Vec<_> = (1..8).map(|n| delay(n).as_millis()).collect();
        assert_eq!(millis, [50, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(delay(u32::MAX).as_millis(), 1000);
    }
}
