//! Work that ends with the lock.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use quorlock_core::renewal::Lost;

use super::Guard;
use crate::error::ReleaseError;

/// Work that was done in time, and what became of the release after it. See [`Guard::while_held`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the output of the work, and perhaps a release that was not confirmed"]
pub struct Finished<T> {
    /// What the work came to. The lock was held until then.
    pub output: T,
    /// What became of the release, which does not take the output away: where it is not confirmed it goes on in the background, and
    /// the name stays locked until its lease ends at latest.
    pub release: Result<(), ReleaseError>,
}

/// Runs work under a guard: its output, or how the lock was lost. The work is dropped when this returns.
pub(super) async fn run<T>(guard: &Guard, work: impl AsyncFnOnce(&Guard) -> T) -> Result<T, Lost> {
    let mut lost = guard.lost();
    let mut work = pin!(work(guard));
    poll_fn(|cx| {
        if let Poll::Ready(lost) = Pin::new(&mut lost).poll(cx) {
            return Poll::Ready(Err(lost));
        }
        let Poll::Ready(output) = guard.span.within(|| work.as_mut().poll(cx)) else {
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
