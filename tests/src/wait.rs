//! Waits for conditions instead of sleeping.

use std::time::{Duration, Instant};

/// The time limit of one condition.
pub const BOUND: Duration = Duration::from_secs(10);

const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Blocks the thread until `look` returns something.
///
/// # Panics
/// Panics after [`BOUND`]. The message has `what`.
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

/// Runs `work` on a runtime with one thread. Requests that a task sends together are queued before the task of a
/// connection runs, so they may be batched.
///
/// # Panics
/// Panics if `work` panics, or no thread can be started.
pub fn on_one_thread<F: Future>(work: impl FnOnce() -> F + Send) -> F::Output
where
    F::Output: Send,
{
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(work())
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the work panicked"))
}
