//! A candidate at work: a stream of what becomes of it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use quorlock_core::fencing::Token;
use quorlock_core::renewal::Lost;
use quorlock_core::time::Time;

use super::leadership::Leadership;
use crate::error::{AcquireError, ReleaseError};
use crate::guard::{Guard, LostSignal};
use crate::lock::Lock;
use crate::runtime::Timer;
use crate::shared::client::Client;
use crate::telemetry;

/// What becomes of a candidate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaderEvent {
    /// The candidate leads.
    #[non_exhaustive]
    Elected {
        /// The fencing token of the term, larger than that of every leader before.
        term: Token,
        /// The term itself: whether it lasts, and stepping down.
        leadership: Leadership,
    },
    /// The candidate leads no longer, and is a candidate again.
    #[non_exhaustive]
    Lost {
        /// Which term has ended.
        term: Token,
        /// How. [`Lost::Released`](crate::Lost::Released) where the leader stepped down.
        how: Lost,
    },
    /// An attempt to be elected has failed: no quorum for [`RetryPolicy::without_quorum`](crate::RetryPolicy::without_quorum), or nodes refuse.
    /// The candidate goes on after a pause, unless the error is one that no waiting cures
    /// ([`AcquireError::Config`], [`AcquireError::Closed`]): then the stream ends.
    #[non_exhaustive]
    Failed {
        /// What went wrong, node by node.
        error: AcquireError,
    },
}

/// A candidate, as a stream of [`LeaderEvent`]s: elected, lost, elected again, until it is dropped. See
/// [`Candidate::campaign`](crate::Candidate::campaign).
///
/// **Poll it or drop it.** A term lasts without being polled, renewed in the background, and its end is told when the
/// stream is polled next: work that does not poll it asks [`Leadership::is_leading`] or waits for [`Leadership::lost`], which
/// end before a node may let another candidate win. A candidate that is not polled wins nothing.
///
/// Dropping it gives up the candidacy; a leader's name is released, **in the background and without a report**
/// ([`Candidacy::resign`] has one).
#[must_use = "streams do nothing unless polled"]
pub struct Candidacy {
    lock: Lock,
    rest: Duration,
    course: Course,
    timer: Box<dyn Timer>,
}

enum Course {
    Campaigning(Acquire),
    Leading(Box<Leading>),
    /// It is no candidate until then.
    Resting(Time),
    /// What no waiting cures has ended it.
    Over,
}

type Acquire = Pin<Box<dyn Future<Output = Result<Guard, AcquireError>> + Send>>;

struct Leading {
    guard: Guard,
    lost: LostSignal,
    leadership: Leadership,
}

impl Candidacy {
    pub(super) fn new(lock: Lock, rest: Duration) -> Self {
        Candidacy {
            timer: lock.client().runtime.timer(),
            course: Course::campaigning(&lock),
            lock,
            rest,
        }
    }

    /// What happens next to this candidate; `None` when what no waiting cures has ended the candidacy.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped early: the candidacy is as it was.
    pub async fn next(&mut self) -> Option<LeaderEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The term of which [`LeaderEvent::Elected`] was told and not yet [`LeaderEvent::Lost`]. It may be over all the same: ask
    /// [`Leadership::is_leading`].
    #[must_use]
    pub fn leadership(&self) -> Option<&Leadership> {
        match &self.course {
            Course::Leading(leading) => Some(&leading.leadership),
            _ => None,
        }
    }

    /// Gives up the candidacy, and the leadership with it, with a report: stop the work first.
    ///
    /// # Errors
    /// As [`Guard::release`], of a leader; none of a candidate.
    ///
    /// # Cancel safety
    /// Dropped early, the release goes on in the background.
    pub async fn resign(self) -> Result<(), ReleaseError> {
        match self.course {
            Course::Leading(leading) => leading.guard.release().await,
            _ => Ok(()),
        }
    }

    /// Polls work while the term lasts. `None` says that it was dropped, or ended too late to have been protected.
    ///
    /// The work is gone when this future is, so before the stream is polled again, which releases the name.
    pub(super) async fn lead<F: Future>(&mut self, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let Course::Leading(leading) = &mut self.course else {
                return Poll::Ready(None);
            };
            if leading.poll_end(cx).is_ready() {
                return Poll::Ready(None);
            }
            let Poll::Ready(output) = work.as_mut().poll(cx) else {
                return Poll::Pending;
            };
            // The last poll may have taken longer than the lease. Work that stepped down and then ended has ended in time.
            let is_late = Pin::new(&mut leading.lost).poll(cx).is_ready();
            Poll::Ready((!is_late).then_some(output))
        })
        .await
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.course, Course::Over)
    }

    fn client(&self) -> &Arc<Client> {
        self.lock.client()
    }

    fn elected(&mut self, guard: Guard) -> LeaderEvent {
        let leadership = Leadership::new(self.client().clone(), &guard);
        let term = leadership.term();
        telemetry::elected(&guard.hold().layout, leadership.owner_id(), term);
        self.course = Course::Leading(Box::new(Leading {
            lost: guard.lost(),
            guard,
            leadership: leadership.clone(),
        }));
        LeaderEvent::Elected { term, leadership }
    }

    /// The term has ended. What goes with it releases the name.
    fn lost(&mut self, term: Token, how: Lost) -> LeaderEvent {
        self.course = if how == Lost::Released {
            // The others were woken by the release, and need a round trip. A candidate that asked again now, with its
            // connection at hand, would mostly be there before them, and stepping down would lead nowhere.
            Course::Resting(self.client().now() + self.rest)
        } else {
            Course::campaigning(&self.lock)
        };
        LeaderEvent::Lost { term, how }
    }

    fn failed(&mut self, error: AcquireError) -> LeaderEvent {
        self.course = match &error {
            AcquireError::Config(_) | AcquireError::Closed => Course::Over,
            _ => {
                // Some errors come at once (a login that is refused): without a pause a node would be asked without end.
                let pause = self.client().config.retry.backoff_cap;
                Course::Resting(self.client().now() + pause)
            }
        };
        if let Ok(layout) = self.lock.layout() {
            telemetry::not_elected(layout, &error);
        }
        LeaderEvent::Failed { error }
    }
}

impl Course {
    fn campaigning(lock: &Lock) -> Self {
        let lock = lock.clone();
        Course::Campaigning(Box::pin(async move { lock.acquire().await }))
    }
}

impl Leading {
    /// Ready when the term is over, on purpose or not.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        if let Poll::Ready(lost) = Pin::new(&mut self.lost).poll(cx) {
            return Poll::Ready(lost);
        }
        if self.leadership.poll_resigned(cx) {
            return Poll::Ready(Lost::Released);
        }
        Poll::Pending
    }
}

impl Stream for Candidacy {
    type Item = LeaderEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LeaderEvent>> {
        let this = self.get_mut();
        loop {
            match &mut this.course {
                Course::Campaigning(acquire) => {
                    return acquire.as_mut().poll(cx).map(|won| {
                        Some(match won {
                            Ok(guard) => this.elected(guard),
                            Err(error) => this.failed(error),
                        })
                    });
                }
                Course::Leading(leading) => {
                    let term = leading.leadership.term();
                    return leading.poll_end(cx).map(|how| Some(this.lost(term, how)));
                }
                Course::Resting(until) => {
                    if this.timer.poll_until(cx, *until).is_pending() {
                        return Poll::Pending;
                    }
                    this.course = Course::campaigning(&this.lock);
                }
                Course::Over => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for Candidacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidacy")
            .field("lock", &self.lock)
            .field("leadership", &self.leadership())
            .finish_non_exhaustive()
    }
}
