//! Drives a future for a number of polls.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Drives a future as its task would, but for at most `polls` polls. Returns `None` if it has not ended by then.
pub async fn poll_times<F: Future + ?Sized>(
    future: &mut Pin<Box<F>>,
    polls: usize,
) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() && left == 0 {
            return Poll::Ready(None);
        }
        polled.map(Some)
    })
    .await
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
