//! Work that ends with the lock, and leaves its guard.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use quorlock_core::renewal::Lost;

/// Runs work until the lock is lost: its output, or how the lock was lost. The work is dropped when this returns.
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
        // The last poll may have taken longer than the lease.
        if let Poll::Ready(lost) = Pin::new(&mut lost).poll(cx) {
            return Poll::Ready(Err(lost));
        }
        Poll::Ready(Ok(output))
    })
    .await
}
