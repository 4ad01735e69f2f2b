//! A call of a client to a resource, from request to answer.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use quorlock::runtime::{Time, Timer};

use quorlock_sim_world::seam::runtime::SimTimer;
use quorlock_sim_world::world::id::ProcessId;

/// The reason why a call to a resource failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The resource was down and did not execute the request. The client can send it again.
    #[error("the resource is down: nothing was done, send the request again")]
    Refused,
    /// No answer arrived in time. The request may have been executed, or may be executed later.
    #[error("no answer in time: the request may have been executed, or may still be")]
    Unanswered,
}

/// The place where the answer to a call is stored.
#[derive(Debug)]
pub(super) struct ResourceReply<A> {
    answer: Option<Result<A, CallError>>,
    waker: Option<Waker>,
}

impl<A> Default for ResourceReply<A> {
    fn default() -> Self {
        ResourceReply {
            answer: None,
            waker: None,
        }
    }
}

impl<A> ResourceReply<A> {
    /// Stores the answer and wakes the caller.
    pub(super) fn put(place: &RefCell<Self>, answer: Result<A, CallError>) {
        let waker = {
            let mut place = place.borrow_mut();
            place.answer = Some(answer);
            place.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A call in flight.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Calling<A> {
    place: Rc<RefCell<ResourceReply<A>>>,
    timer: SimTimer,
    until: Time,
}

impl<A> Calling<A> {
    /// Waits for the answer in `place`, until the clock of the process shows `until`.
    pub(super) fn new(who: ProcessId, place: Rc<RefCell<ResourceReply<A>>>, until: Time) -> Self {
        Calling {
            place,
            timer: SimTimer::new(who),
            until,
        }
    }
}

impl<A> Future for Calling<A> {
    type Output = Result<A, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        {
            let mut place = self.place.borrow_mut();
            if let Some(answer) = place.answer.take() {
                return Poll::Ready(answer);
            }
            place.waker = Some(cx.waker().clone());
        }
        let until = self.until;
        let is_late = self.timer.poll_until(cx, until);
        is_late.map(|()| Err(CallError::Unanswered))
    }
}
