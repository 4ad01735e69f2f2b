//! A request to an embedded node.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock_core::message::Request;
use quorlock_core::time::Time;
use quorlock_core::transport::{Cause, TransportError};

use super::{NodeShared, Outcome, Way};
use crate::mutex::Mutex;
use crate::runtime::Timer;

/// The place in which the outcome of a request is stored.
#[derive(Default)]
pub(super) struct OutcomeSlot(Mutex<(Option<Outcome>, Option<Waker>)>);

impl OutcomeSlot {
    pub(super) fn fill(&self, outcome: Outcome) {
        let waker = {
            let mut slot = self.0.lock();
            slot.0 = Some(outcome);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Outcome> {
        let mut slot = self.0.lock();
        match slot.0.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                slot.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// A call that is sent at its first poll, and answered or timed out later.
pub(super) struct EmbeddedCall {
    shared: Arc<NodeShared>,
    way: Way,
    request: Option<Request>,
    slot: Arc<OutcomeSlot>,
    deadline: Time,
    timer: Option<Box<dyn Timer>>,
}

impl EmbeddedCall {
    pub(super) fn new(shared: Arc<NodeShared>, way: Way, request: Request) -> Self {
        EmbeddedCall {
            shared,
            way,
            request: Some(request),
            slot: Arc::default(),
            deadline: Time::NEVER,
            timer: None,
        }
    }

    /// Sends the request. Returns the outcome if the node has no latency and has answered.
    fn send(&mut self, request: Request) -> Option<Outcome> {
        self.deadline = self.shared.runtime.now() + self.way.call_timeout;
        if self.way.round_trip.is_zero() {
            return self.shared.take(&request, &self.slot);
        }
        let (shared, slot) = (self.shared.clone(), self.slot.clone());
        let one_way = self.way.round_trip / 2;
        self.shared.runtime.spawn(Box::pin(async move {
            pause(&shared, one_way).await;
            let answered = Arc::new(OutcomeSlot::default());
            let outcome = match shared.take(&request, &answered) {
                Some(outcome) => outcome,
                None => poll_fn(|cx| answered.poll(cx)).await,
            };
            pause(&shared, one_way).await;
            slot.fill(outcome);
        }));
        None
    }
}

async fn pause(shared: &NodeShared, span: Duration) {
    let at = shared.runtime.now() + span;
    let mut timer = shared.runtime.timer();
    poll_fn(|cx| timer.poll_until(cx, at)).await;
}

impl Future for EmbeddedCall {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let this = self.get_mut();
        if let Some(request) = this.request.take()
            && let Some(outcome) = this.send(request)
        {
            return Poll::Ready(outcome);
        }
        if let Poll::Ready(outcome) = this.slot.poll(cx) {
            return Poll::Ready(outcome);
        }
        let timer = this
            .timer
            .get_or_insert_with(|| this.shared.runtime.timer());
        match timer.poll_until(cx, this.deadline) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(TransportError::indeterminate(
                Cause::TimedOut,
                "no answer from the node",
            ))),
        }
    }
}

#[cfg(all(test, shuttle))]
mod threads {
    use super::*;

    #[test]
    fn an_outcome_reaches_the_caller_whenever_it_looks() {
        let name = "an_outcome_reaches_the_caller_whenever_it_looks";
        quorlock_explore::explore_all(name, 10_000, async || {
            let slot = Arc::<OutcomeSlot>::default();
            let filled = slot.clone();
            drop(shuttle::future::spawn(async move {
                filled.fill(Err(TransportError::definite(Cause::Closed, "a test")));
            }));
            let outcome = poll_fn(|cx| slot.poll(cx)).await;
            assert!(outcome.is_err());
        });
    }
}
