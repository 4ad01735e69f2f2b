//! Waits for conditions instead of sleeping.

use std::time::{Duration, Instant};

/// The time limit of one condition.
pub const BOUND: Duration = Duration::from_secs(10);

/// The time limit of what needs an election. Sentinels that voted for each other vote again seconds later, several
/// times if necessary.
pub const ELECTED: Duration = Duration::from_secs(30);

/// The time between the first looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// The longest time between two looks.
const RARELY: Duration = Duration::from_millis(50);

/// Blocks the thread until `look` returns something. Returns `None` if that takes longer than `bound`.
pub fn within<T>(bound: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let found = look();
        if found.is_some() || bound <= start.elapsed() {
            return found;
        }
        // A look takes processor time from what it waits for. In a long wait, looks are rare.
        std::thread::sleep((start.elapsed() / 32).clamp(BETWEEN_LOOKS, RARELY));
    }
}

/// Blocks the thread until `look` returns something.
///
/// # Panics
/// Panics after [`BOUND`]. The message has `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(BOUND, look).unwrap_or_else(|| panic!("{BOUND:?} were not enough: {what}"))
}

/// Blocks the thread until `look` returns something that needs an election.
///
/// # Panics
/// Panics after [`ELECTED`]. The message has `what`.
#[track_caller]
pub fn patiently<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(ELECTED, look).unwrap_or_else(|| panic!("{ELECTED:?} were not enough: {what}"))
}

/// Blocks the thread until the condition holds.
///
/// # Panics
/// Panics after [`BOUND`]. The message has `what`.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Lets other tasks run until the condition holds.
///
/// # Panics
/// Panics after [`BOUND`]. The message has `what`.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < BOUND, "{BOUND:?} were not enough: {what}");
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
