//! Work that ends with the lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quorlock_core::renewal::Lost;

use super::{Guard, LostSignal};
use crate::error::ReleaseError;

/// A future that runs work while a lock is held. See [`Guard::while_held`].
#[must_use = "futures do nothing unless polled"]
pub struct WhileHeld<F: Future> {
    lost: LostSignal,
    stage: Stage<F>,
}

enum Stage<F: Future> {
    Working {
        work: Pin<Box<F>>,
        guard: Guard,
    },
    Releasing {
        output: Option<F::Output>,
        release: Release,
    },
    Done,
}

type Release = Pin<Box<dyn Future<Output = Result<(), ReleaseError>> + Send>>;

/// The work is pinned in a box of its own, so the whole may move.
impl<F: Future> Unpin for WhileHeld<F> {}

impl<F: Future> WhileHeld<F> {
    pub(crate) fn new(guard: Guard, work: F) -> Self {
        WhileHeld {
            lost: guard.lost(),
            stage: Stage::Working {
                work: Box::pin(work),
                guard,
            },
        }
    }
}

impl<F: Future> Future for WhileHeld<F> {
    type Output = Result<F::Output, Lost>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.stage, Stage::Done) {
                // Bound in this order, so that the work is dropped before the guard whatever happens.
                Stage::Working { guard, mut work } => {
                    if let Poll::Ready(lost) = Pin::new(&mut this.lost).poll(cx) {
                        return Poll::Ready(Err(lost));
                    }
                    let Poll::Ready(output) = guard.span().within(|| work.as_mut().poll(cx)) else {
                        this.stage = Stage::Working { work, guard };
                        return Poll::Pending;
                    };
                    // The last poll may have taken longer than the lease.
                    if let Poll::Ready(lost) = Pin::new(&mut this.lost).poll(cx) {
                        return Poll::Ready(Err(lost));
                    }
                    this.stage = Stage::Releasing {
                        output: Some(output),
                        release: Box::pin(guard.release()),
                    };
                }
                // The work was done in time: what becomes of the release does not take its result away.
                Stage::Releasing {
                    mut output,
                    mut release,
                } => match release.as_mut().poll(cx) {
                    Poll::Pending => {
                        this.stage = Stage::Releasing { output, release };
                        return Poll::Pending;
                    }
                    Poll::Ready(_) => {
                        let output = output.take().expect("BUG: the output is taken once");
                        return Poll::Ready(Ok(output));
                    }
                },
                Stage::Done => panic!("WhileHeld was polled after it had ended"),
            }
        }
    }
}

impl<F: Future> fmt::Debug for WhileHeld<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WhileHeld")
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
