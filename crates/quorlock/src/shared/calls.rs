//! Requests under way, polled in place by the future that waits for them.

use std::fmt;
use std::task::{Context, Poll, Waker};

use quorlock_core::message::Reply;
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, TransportError};

use crate::runtime::Runtime;

/// The end of a request.
pub(crate) struct Received {
    pub(crate) result: Result<Reply, TransportError>,
    /// A reading of the clock from after the result was taken out of its call.
    pub(crate) at: Time,
}

impl Received {
    /// Dates a result. A reading from before it was taken in is of no use: a process that is stopped between the two
    /// takes in what other processes did meanwhile, and would date that before they did it.
    pub(crate) fn now(result: Result<Reply, TransportError>, clock: &dyn Runtime) -> Self {
        Received {
            result,
            at: clock.now(),
        }
    }
}

/// Sends a request if it has not been, and takes its result if it has come. No task is woken when it comes later.
pub(crate) fn poll_once(call: &mut Call, clock: &dyn Runtime) -> Poll<Received> {
    let result = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    result.map(|result| Received::now(result, clock))
}

/// Requests under way, each with what tells it from the others.
pub(crate) struct Calls<T> {
    list: Vec<(T, Call)>,
}

impl<T: Copy> Calls<T> {
    /// With room for so many.
    pub(crate) fn of(most: usize) -> Self {
        Calls {
            list: Vec::with_capacity(most),
        }
    }

    pub(crate) fn push(&mut self, tag: T, call: Call) {
        self.list.push((tag, call));
    }

    /// Whether every call has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Polls each call once and passes on the results of those that ended.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Runtime,
        mut ended: impl FnMut(T, Received),
    ) {
        // Those of thousands of names may end in one go.
        self.list
            .retain_mut(|(tag, call)| match call.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    ended(*tag, Received::now(result, clock));
                    false
                }
            });
    }

    /// The call with such a tag, if it has not ended.
    pub(crate) fn take(&mut self, is: impl Fn(&T) -> bool) -> Option<Call> {
        let index = self.list.iter().position(|(tag, _)| is(tag))?;
        Some(self.list.remove(index).1)
    }

    /// The calls that have not ended.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (T, Call)> + '_ {
        self.list.drain(..)
    }
}

impl<T> fmt::Debug for Calls<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calls({})", self.list.len())
    }
}
