//! Passes one value from one task to another.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// A value in transit. The mutex is never held across a step.
pub(crate) struct Mailbox<T>(Mutex<(Option<T>, Option<Waker>)>);

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Mailbox(Mutex::new((None, None)))
    }

    pub(crate) fn put(&self, value: T) {
        let waker = {
            let mut inside = self.0.lock().unwrap();
            inside.0 = Some(value);
            inside.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll_take(&self, cx: &Context<'_>) -> Poll<T> {
        let waker = Some(cx.waker().clone());
        let mut inside = self.0.lock().unwrap();
        if let Some(value) = inside.0.take() {
            return Poll::Ready(value);
        }
        let before = std::mem::replace(&mut inside.1, waker);
        drop(inside);
        // The old waker may be the last owner of a value of the product, whose drop takes a step.
        drop(before);
        Poll::Pending
    }
}
