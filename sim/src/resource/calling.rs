//! One call of a client, from its question to its answer.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use quorlock::{Time, Timer};

use crate::seam::runtime::SimTimer;
use crate::world::id::ProcessId;

/// Why a resource has not answered a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// It was down, and has not done what it was asked: ask again.
    #[error("the resource is down: nothing was done, ask again")]
    Refused,
    /// No answer came in time. What it was asked may have been done, or may yet be.
    #[error("no answer in time: it may have been done, or may yet be")]
    Unanswered,
}

/// Where the answer to a call is put.
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
    /// The answer has come to its client, which is woken.
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

/// A call that is under way.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Calling<A> {
    place: Rc<RefCell<ResourceReply<A>>>,
    timer: SimTimer,
    until: Time,
}

impl<A> Calling<A> {
    /// Waits for the answer in a place, until a time on the clock of the process.
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
