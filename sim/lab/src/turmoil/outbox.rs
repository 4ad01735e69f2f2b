//! The outbox of a process: requests that wait for the adapter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quorlock::transport::{Channel, Listener, Reply, Request, TransportError, Witness};

use quorlock_sim_world::world::id::{ClientId, Seat};
use quorlock_sim_world::world::slab::Key;

pub(super) type OutboxReply = Result<Reply, TransportError>;

/// A request that a process has left for the adapter.
#[derive(Debug)]
pub(super) struct Posted {
    client: ClientId,
    seat: Seat,
    answer: Option<OutboxReply>,
    /// Whether the adapter has finished the request.
    is_over: bool,
    /// Whether the caller no longer waits for the answer.
    is_given_up: bool,
    wakers: Wakers,
}

/// The tasks that wait for a change of a request.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// The task that waits for the answer.
    pub(super) caller: Option<Waker>,
    /// The task that waits for the caller to give up.
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

    /// Takes the answer. If there is none, the task is woken when it arrives.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<OutboxReply> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(answer);
        }
        self.wakers.caller = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Records that the caller no longer waits for the answer.
    pub(super) fn give_up(&mut self) -> Wakers {
        self.is_given_up = true;
        std::mem::take(&mut self.wakers)
    }

    /// Returns whether the caller no longer waits. If it still waits, the task is woken when the caller gives up.
    pub(super) fn is_given_up(&mut self, cx: &Context<'_>) -> bool {
        self.wakers.carrier = Some(cx.waker().clone());
        self.is_given_up
    }

    /// Finishes the request. Returns the caller's waker, and whether the caller has given up.
    pub(super) fn hand_in(&mut self, answer: Option<OutboxReply>) -> (Option<Waker>, bool) {
        self.answer = answer;
        self.is_over = true;
        (self.wakers.caller.take(), self.is_given_up)
    }
}

/// A subscription or a witness that the adapter manages.
#[derive(Debug)]
pub(super) struct Listening;

/// The requests of a process for its adapter.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    errands: VecDeque<(u64, OutboxJob)>,
    adapter: Option<Waker>,
}

/// A request for the adapter.
pub(super) enum OutboxJob {
    Call(Key<Posted>, Seat, Box<Request>),
    Listen(Key<Listening>, Seat, Channel, Arc<dyn Listener>),
    Attend(Key<Listening>, Seat, Arc<dyn Witness>),
    Leave(Key<Listening>),
}

impl std::fmt::Debug for OutboxJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OutboxJob::Call(key, seat, _) => write!(f, "Call({key:?} to {seat})"),
            OutboxJob::Listen(key, seat, channel, _) => {
                write!(f, "Listen({key:?} to {channel:?} on {seat})")
            }
            OutboxJob::Attend(key, seat, _) => write!(f, "Attend({key:?} to {seat})"),
            OutboxJob::Leave(key) => write!(f, "Leave({key:?})"),
        }
    }
}

impl Outbox {
    /// Adds a request that is due at `departs`. This is later than now if the process is paused in the middle of a
    /// step.
    pub(super) fn leave(&mut self, departs: u64, errand: OutboxJob) {
        self.errands.push_back((departs, errand));
    }

    /// Returns the adapter's waker if a request is due.
    pub(super) fn called(&mut self, now: u64) -> Option<Waker> {
        let (departs, _) = self.errands.front()?;
        (*departs <= now).then(|| self.adapter.take())?
    }

    pub(super) fn take(&mut self, now: u64, cx: &Context<'_>) -> Poll<Vec<OutboxJob>> {
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

    /// Empties the outbox for the next process. The result must be dropped while the world is not borrowed.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        (std::mem::take(&mut self.errands), self.adapter.take())
    }
}
