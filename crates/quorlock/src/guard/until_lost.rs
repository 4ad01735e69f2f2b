//! Work that ends when the lock is lost.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use quorlock_core::renewal::Lost;

/// Runs work until the lock is lost. Returns its output, or how the lock was lost; the work is dropped by then.
pub(super) async fn run<T>(
    mut lost: impl Future<Output = Lost> + Unpin,
    work: impl Future<Output = T>,
) -> Result<T, Lost> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(lost) = Pin::new(&mut lost).poll(cx) {
            return Poll::Ready(Err(lost));
        }
        let Poll::Ready(output) = work.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        // Check again: the last poll may have taken longer than the rest of the lease, and B may hold the name by
        // now.
        if let Poll::Ready(lost) = Pin::new(&mut lost).poll(cx) {
            return Poll::Ready(Err(lost));
        }
        Poll::Ready(Ok(output))
    })
    .await
}
