//! The clock of the real machine, which all processes of a run share, and waits on it.
#![expect(
    clippy::disallowed_methods,
    reason = "these clients and servers live on the real machine"
)]

use std::future::Future;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The longest time that the nodes, and then the clients, may take to start. Some storms side by side take longer than
/// a minute for it on a machine that other programs use, too.
pub(super) const START_BOUND: Duration = Duration::from_secs(180);

/// Returns the reading of a clock that all processes share and that no fault changes, in nanoseconds.
pub(super) fn now() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::MonotonicRaw;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    nanos(clock)
}

/// Returns the reading of this process's own clock, which faults may change, in nanoseconds. It continues while the
/// machine is suspended.
pub(super) fn own() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    nanos(clock)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Blocks the thread.
pub(super) fn sleep_in_thread(span: Duration) {
    std::thread::sleep(span);
}

pub(super) async fn sleep(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Sleeps until the clock shows this time.
pub(super) async fn sleep_until(at: u64) {
    loop {
        let left = at.saturating_sub(now());
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_nanos(left)).await;
    }
}

/// Returns the output of a future, or `None` if the future takes longer than `bound`.
pub(super) async fn within<F: Future>(bound: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(bound, future).await.ok()
}

/// Polls a condition every few milliseconds until it holds. Returns `None` if that takes longer than `bound`.
pub(super) async fn wait_for<T>(
    bound: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    let until = now().saturating_add(u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX));
    loop {
        if let Some(found) = look().await {
            return Some(found);
        }
        if until <= now() {
            return None;
        }
        sleep(Duration::from_millis(3)).await;
    }
}
