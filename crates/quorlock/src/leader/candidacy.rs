//! A campaigning candidate, as a stream of events.

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

/// An event in the course of a candidacy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LeaderEvent {
    /// The candidate was elected, and leads.
    #[non_exhaustive]
    Elected {
        /// The fencing token of the term, larger than that of every earlier leader.
        term: Token,
        /// The handle of the term, to check it and to step down.
        leadership: Leadership,
    },
    /// The candidate no longer leads, and is a candidate again.
    #[non_exhaustive]
    Lost {
        /// The fencing token of the term that ended.
        term: Token,
        /// How the term ended; [`Lost::Released`](crate::Lost::Released) if the leader stepped down.
        how: Lost,
    },
    /// An attempt to be elected failed: there was no quorum for
    /// [`RetryPolicy::without_quorum`](crate::RetryPolicy::without_quorum), or nodes refused.
    ///
    /// The candidate tries again after a pause. If waiting cannot cure the error ([`AcquireError::Config`],
    /// [`AcquireError::Closed`]), the stream ends.
    #[non_exhaustive]
    Failed {
        /// The error, with a report of each node.
        error: AcquireError,
    },
}

/// A candidate as a stream of [`LeaderEvent`]s: elected, lost, elected again, until it is dropped. See
/// [`Candidate::campaign`](crate::Candidate::campaign).
///
/// **Poll it or drop it.** A term is renewed in the background and continues without polling. Its end is reported at
/// the next poll of the stream. Work that does not poll the stream must check [`Leadership::is_leading`] or wait for
/// [`Leadership::lost`], which report the end before a node may let another candidate win. A candidate that is not
/// polled is not elected.
///
/// Dropping it ends the candidacy. The name of a leader is then released **in the background and without a report**;
/// use [`Candidacy::resign`] to learn the result.
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
    /// No candidate until this time.
    Resting(Time),
    /// Ended by an error that waiting cannot cure.
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

    /// Returns the next event of this candidate; `None` after an error that waiting cannot cure.
    ///
    /// # Cancel safety
    /// If the future is dropped early, no event is lost: the candidacy is unchanged.
    pub async fn next(&mut self) -> Option<LeaderEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns the term whose [`LeaderEvent::Elected`] was reported and whose [`LeaderEvent::Lost`] was not. The term
    /// may be over by now: check [`Leadership::is_leading`].
    #[must_use]
    pub fn leadership(&self) -> Option<&Leadership> {
        match &self.course {
            Course::Leading(leading) => Some(&leading.leadership),
            _ => None,
        }
    }

    /// Ends the candidacy, and the leadership with it, and reports the release. Stop the work first.
    ///
    /// # Errors
    /// Those of [`Guard::release`], if the candidate leads; otherwise none.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the release continues in the background.
    pub async fn resign(self) -> Result<(), ReleaseError> {
        match self.course {
            Course::Leading(leading) => leading.guard.release().await,
            _ => Ok(()),
        }
    }

    /// Polls the work while the term lasts. Returns `None` if it was dropped, or ended too late to have been protected.
    ///
    /// The work is dropped with this future, and so before the next poll of the stream, which releases the name.
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
            // The last poll may have taken longer than the lease. But work that stepped down and then ended was in
            // time.
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

    /// Handles the end of the term. The guard is dropped here, which releases the name.
    fn lost(&mut self, term: Token, how: Lost) -> LeaderEvent {
        self.course = if how == Lost::Released {
            // A steps down. The release wakes B, whose request needs a round trip. If A requested the name now, it
            // would mostly arrive before B, and stepping down would have no effect.
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
                // Some errors are immediate, such as a refused login. Without a pause the candidate would flood the
                // node with requests.
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
    /// Ready when the term is over, by a loss or on purpose.
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
