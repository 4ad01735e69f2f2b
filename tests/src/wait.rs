//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// The longest that any single condition may take.
pub const BOUND: Duration = Duration::from_secs(10);

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Blocks the thread until `look` finds something.
///
/// # Panics
/// After [`BOUND`], naming `what` was waited for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < BOUND, "{BOUND:?} were not enough: {what}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Blocks the thread until the condition holds.
///
/// # Panics
/// After [`BOUND`], naming `what` was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Lets other tasks run until the condition holds.
///
/// # Panics
/// After [`BOUND`], naming `what` was waited for.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < BOUND, "{BOUND:?} were not enough: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
