//! The one place where this crate reads a clock, waits and spawns.
//!
//! An adapter owns its sockets and the tasks that drive them, so it uses tokio's timer directly and not through the
//! `Runtime` seam, which is for the algorithm. A paused tokio clock (as in a simulated network) bends it all the same.

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;

use crate::sync::task;

pub(crate) use tokio::time::{Instant, Sleep};

/// A hundred years: a longer span is taken for this one, so that no sum of a reading and a span overflows.
pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The time.
#[expect(
    clippy::disallowed_methods,
    reason = "bounds calls, decides nothing about leases"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The output of `future`, or `None` when the deadline comes first.
///
/// No `async fn`, which would keep room for the future twice.
pub(crate) fn by<F: Future>(
    deadline: Instant,
    future: F,
) -> impl Future<Output = Option<F::Output>> {
    tokio::time::timeout_at(deadline, future).map(Result::ok)
}

/// Waits.
#[expect(
    clippy::disallowed_methods,
    reason = "delays connection attempts, decides nothing about leases"
)]
pub(crate) fn sleep_until(deadline: Instant) -> Sleep {
    tokio::time::sleep_until(deadline)
}

/// Runs a task of the adapter's own: one that drives a socket, or makes a connection that several callers wait for.
#[expect(
    clippy::disallowed_methods,
    reason = "sockets are driven by tasks of the tokio runtime they are registered with"
)]
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> task::JoinHandle<()> {
    task::spawn(work)
}

/// Runs what blocks, like the reading of a file, on a thread that is there for that. `None` when the runtime was shut down.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// How long to wait after so many failed connection attempts in a row (at least one): 50 ms, doubling up to 1 s.
pub(crate) fn delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(5);
    Duration::from_millis(50 << doublings).min(Duration::from_secs(1))
}

/// Timers of tokio need its context. Its time stands still under `shuttle`.
#[cfg(all(test, shuttle))]
pub(crate) fn with_timers(test: impl FnOnce()) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let tokio = builder.enable_time().start_paused(true).build();
    // Never dropped: it would wake tasks of a schedule that has failed.
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
