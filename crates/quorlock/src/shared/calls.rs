//! Requests in flight, polled by the future that waits for them.

use std::fmt;
use std::task::{Context, Poll, Waker};

use quorlock_core::message::Reply;
use quorlock_core::time::Time;
use quorlock_core::transport::{Call, TransportError};

use crate::runtime::Runtime;

/// The result of a request, with its time.
pub(crate) struct Received {
    pub(crate) result: Result<Reply, TransportError>,
    /// When the result was taken out of its call. The clock was read after that.
    pub(crate) at: Time,
}

impl Received {
    /// Dates a result that was just taken in. The clock must not be read earlier. If A is suspended between the
    /// reading and the result, the result may show what B did meanwhile, and would be dated to a time before B did it.
    pub(crate) fn now(result: Result<Reply, TransportError>, clock: &dyn Runtime) -> Self {
        Received {
            result,
            at: clock.now(),
        }
    }
}

/// Polls a call once, which sends its request if that has not been sent. No task is woken when the result arrives
/// later.
pub(crate) fn poll_once(call: &mut Call, clock: &dyn Runtime) -> Poll<Received> {
    let result = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    result.map(|result| Received::now(result, clock))
}

/// Requests in flight, each with a tag.
pub(crate) struct Calls<T> {
    list: Vec<(T, Call)>,
}

impl<T: Copy> Calls<T> {
    /// Creates a list with capacity for `most` calls.
    pub(crate) fn of(most: usize) -> Self {
        Calls {
            list: Vec::with_capacity(most),
        }
    }

    pub(crate) fn push(&mut self, tag: T, call: Call) {
        self.list.push((tag, call));
    }

    /// Whether all calls have ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Polls each call once, and passes on the results of those that ended.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Runtime,
        mut ended: impl FnMut(T, Received),
    ) {
        // One pass: the calls of thousands of names may end in one poll.
        self.list
            .retain_mut(|(tag, call)| match call.as_mut().poll(cx) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    ended(*tag, Received::now(result, clock));
                    false
                }
            });
    }

    /// Removes and returns the call with a matching tag, if it has not ended.
    pub(crate) fn take(&mut self, is: impl Fn(&T) -> bool) -> Option<Call> {
        let index = self.list.iter().position(|(tag, _)| is(tag))?;
        Some(self.list.remove(index).1)
    }

    /// Removes and returns the calls that have not ended.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (T, Call)> + '_ {
        self.list.drain(..)
    }
}

impl<T> fmt::Debug for Calls<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calls({})", self.list.len())
    }
}
