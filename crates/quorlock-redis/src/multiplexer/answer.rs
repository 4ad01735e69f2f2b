//! The reply that a caller waits for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Multiplexer, Reply, Slot};

/// The reply to one request. If it is dropped early, the reply is discarded when it comes.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub(crate) struct Answer {
    pub(super) multiplexer: Arc<Multiplexer>,
    /// The place of the request among all requests of the connection. `None` once the reply was taken.
    pub(super) number: Option<u64>,
}

impl Future for Answer {
    type Output = Reply;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        let this = self.get_mut();
        let number = this.number.expect("BUG: an answer is polled again");
        let mut state = this.multiplexer.lock();
        if let Some(reply) = state.aside.remove(&number) {
            this.number = None;
            return Poll::Ready(reply);
        }
        let slot = state.slot(number).expect("BUG: an answer was forgotten");
        match slot {
            Slot::Open(Some(waker)) => waker.clone_from(cx.waker()),
            Slot::Open(none) => *none = Some(cx.waker().clone()),
            Slot::Answered(_) => {
                let slot = std::mem::replace(slot, Slot::Left);
                state.shorten();
                if let Slot::Answered(reply) = slot {
                    this.number = None;
                    return Poll::Ready(reply);
                }
            }
            Slot::Left => {}
        }
        Poll::Pending
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let Some(number) = self.number else {
            return;
        };
        let mut state = self.multiplexer.lock();
        if let Some(slot) = state.slot(number) {
            let before = std::mem::replace(slot, Slot::Left);
            state.shorten();
            // Outside the mutex: the drop of a waker or a value may run code that sends a request here, and would
            // wait for ever.
            drop(state);
            drop(before);
        } else {
            let reply = state.aside.remove(&number);
            drop(state);
            drop(reply);
        }
    }
}
