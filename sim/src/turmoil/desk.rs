//! What a process leaves for its adapter, until that has taken it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::{Channel, Listener, Reply, Request, TransportError};

use crate::world::slab::Key;

pub(super) type Answer = Result<Reply, TransportError>;

/// A request that was left for the adapter.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) client: u16,
    pub(super) seat: u16,
    pub(super) answer: Option<Answer>,
    /// The adapter has done with it.
    pub(super) is_over: bool,
    /// No caller waits for the answer any more.
    pub(super) is_given_up: bool,
    pub(super) caller: Option<Waker>,
    pub(super) carrier: Option<Waker>,
}

/// A subscription in the hands of the adapter.
#[derive(Debug)]
pub(super) struct Listening;

/// What a process leaves for its adapter.
#[derive(Debug, Default)]
pub(super) struct Desk {
    errands: VecDeque<(u64, Errand)>,
    adapter: Option<Waker>,
}

/// One thing to be done.
pub(super) enum Errand {
    Call(Key<Posted>, u16, Box<Request>),
    Listen(Key<Listening>, u16, Channel, Arc<dyn Listener>),
    Leave(Key<Listening>),
}

impl std::fmt::Debug for Errand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Errand::Call(key, seat, _) => write!(f, "Call({key:?} to {seat})"),
            Errand::Listen(key, seat, channel, _) => {
                write!(f, "Listen({key:?} to {channel:?} on {seat})")
            }
            Errand::Leave(key) => write!(f, "Leave({key:?})"),
        }
    }
}

impl Desk {
    /// To be done at a time, which may be later than now: then the process is paused in the middle of it.
    pub(super) fn leave(&mut self, departs: u64, errand: Errand) {
        self.errands.push_back((departs, errand));
    }

    /// Whom to wake for what is due.
    pub(super) fn called(&mut self, now: u64) -> Option<Waker> {
        let (departs, _) = self.errands.front()?;
        (*departs <= now).then(|| self.adapter.take())?
    }

    pub(super) fn take(&mut self, now: u64, cx: &Context<'_>) -> Poll<Vec<Errand>> {
        let mut due = Vec::new();
        while let Some((departs, _)) = self.errands.front()
            && *departs <= now
        {
            due.extend(self.errands.pop_front().map(|(_, errand)| errand));
        }
        if due.is_empty() {
            self.adapter = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(due)
    }

    /// Empties it, for the next process. To be dropped outside the world.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        (std::mem::take(&mut self.errands), self.adapter.take())
    }
}
