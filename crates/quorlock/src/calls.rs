//! Requests under way, polled in place by the future that waits for them.

use std::fmt;
use std::task::{Context, Poll};

use quorlock_core::message::Reply;
use quorlock_core::transport::{Call, TransportError};

pub(crate) struct Calls<T> {
    list: Vec<(T, Call)>,
}

impl<T> Calls<T> {
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
        mut ended: impl FnMut(T, Result<Reply, TransportError>),
    ) {
        let mut index = 0;
        while let Some((_, call)) = self.list.get_mut(index) {
            match call.as_mut().poll(cx) {
                Poll::Pending => index += 1,
                Poll::Ready(result) => {
                    let (tag, _) = self.list.remove(index);
                    ended(tag, result);
                }
            }
        }
    }

    /// The call with this tag, if it has not ended.
    pub(crate) fn take(&mut self, tag: T) -> Option<Call>
    where
        T: PartialEq,
    {
        let index = self.list.iter().position(|(other, _)| *other == tag)?;
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
