//! What a process leaves for its adapter, until that has taken it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::{Channel, Listener, Reply, Request, TransportError};

use crate::world::id::{ClientId, Seat};
use crate::world::slab::Key;

pub(super) type DeskReply = Result<Reply, TransportError>;

/// A request that was left for the adapter.
#[derive(Debug)]
pub(super) struct Posted {
    client: ClientId,
    seat: Seat,
    answer: Option<DeskReply>,
    /// The adapter has done with it.
    is_over: bool,
    /// No caller waits for the answer any more.
    is_given_up: bool,
    wakers: Wakers,
}

/// The tasks that wait for something about a request.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// Waits for the answer.
    pub(super) caller: Option<Waker>,
    /// Waits for the caller to give up.
    pub(super) carrier: Option<Waker>,
}

impl Posted {
    pub(super) fn new(client: ClientId, seat: Seat) -> Self {
        Posted {
            client,
            seat,
            answer: None,
            is_over: false,
            is_given_up: false,
            wakers: Wakers::default(),
        }
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    pub(super) fn seat(&self) -> Seat {
        self.seat
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer, once; until there is one, the task is woken when it comes.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<DeskReply> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        self.wakers.caller = Some(cx.waker().clone());
        Poll::Pending
    }

    /// No caller waits for it any more.
    pub(super) fn give_up(&mut self) -> Wakers {
        self.is_given_up = true;
        std::mem::take(&mut self.wakers)
    }

    /// Whether no caller waits for it; if one does, the task is woken when none does.
    pub(super) fn is_given_up(&mut self, cx: &Context<'_>) -> bool {
        self.wakers.carrier = Some(cx.waker().clone());
        self.is_given_up
    }

    /// It has come to its end: the caller to wake, and whether there is none any more.
    pub(super) fn hand_in(&mut self, answer: Option<DeskReply>) -> (Option<Waker>, bool) {
        self.answer = answer;
        self.is_over = true;
        (self.wakers.caller.take(), self.is_given_up)
    }
}

/// A subscription in the hands of the adapter.
#[derive(Debug)]
pub(super) struct Listening;

/// What a process leaves for its adapter.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    errands: VecDeque<(u64, Job)>,
    adapter: Option<Waker>,
}

/// One thing to be done.
pub(super) enum Job {
    Call(Key<Posted>, Seat, Box<Request>),
    Listen(Key<Listening>, Seat, Channel, Arc<dyn Listener>),
    Leave(Key<Listening>),
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Job::Call(key, seat, _) => write!(f, "Call({key:?} to {seat})"),
            Job::Listen(key, seat, channel, _) => {
                write!(f, "Listen({key:?} to {channel:?} on {seat})")
            }
            Job::Leave(key) => write!(f, "Leave({key:?})"),
        }
    }
}

impl Outbox {
    /// To be done at a time, which may be later than now: then the process is paused in the middle of it.
    pub(super) fn leave(&mut self, departs: u64, errand: Job) {
        self.errands.push_back((departs, errand));
    }

    /// Whom to wake for what is due.
    pub(super) fn called(&mut self, now: u64) -> Option<Waker> {
        let (departs, _) = self.errands.front()?;
        (*departs <= now).then(|| self.adapter.take())?
    }

    pub(super) fn take(&mut self, now: u64, cx: &Context<'_>) -> Poll<Vec<Job>> {
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
