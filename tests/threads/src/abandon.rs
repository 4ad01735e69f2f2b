//! Futures that are dropped before they end.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Polls a future a number of times, and drops it. Before each poll, other threads get their turns.
pub async fn abandon<T>(
    mut future: Pin<Box<dyn Future<Output = T> + Send>>,
    polls: u64,
) -> Option<T> {
    let mut left = polls;
    poll_fn(move |cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}
