//! The resource that a lock protects: it accepts writes, and rejects stale tokens if writes have one.

use std::task::{Context, Poll, Waker};

use crate::history::{Accepted, HoldId, NameId, Written};
use crate::world::id::ProcessId;
use quorlock_sim_plan::draw::{Draw, Purpose};

/// One store for all clients, with one resource for each name.
#[derive(Debug, Default)]
pub struct Store {
    latency: Option<Draw>,
    /// The largest token seen, for each resource.
    largest: Vec<u64>,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Store {
            latency: Some(Draw::new(seed, Purpose::Latency, u64::MAX)),
            largest: Vec::new(),
        }
    }

    /// Draws all later latencies anew.
    pub(super) fn branch_off(&mut self, seed: u64) {
        if let Some(draw) = &mut self.latency {
            draw.branch_off(seed);
        }
    }

    /// Draws the latency of a message to or from the store.
    pub(crate) fn latency(&mut self, min: u64, max: u64) -> u64 {
        let draw = self.latency.as_mut();
        draw.map_or(min, |draw| draw.between(min, max))
    }

    /// Executes a read or a write that has arrived.
    pub fn take(&mut self, write: &mut Write, now: u64) -> Accepted {
        let accepted = self.accept(write.name, write.token);
        write.answer = Some((accepted, now));
        accepted
    }

    fn accept(&mut self, name: NameId, token: Option<u64>) -> Accepted {
        let at = usize::from(name.0);
        if self.largest.len() <= at {
            self.largest.resize(at + 1, 0);
        }
        let Some((largest, token)) = self.largest.get_mut(at).zip(token) else {
            return Accepted::Yes;
        };
        if token < *largest {
            return Accepted::No;
        }
        *largest = token;
        Accepted::Yes
    }
}

/// A kind of request to the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreRequest {
    /// Reads the content. With a token, the store checks and remembers the token as for a write.
    Read,
    /// Writes a value that does not depend on a read.
    Write,
    /// Writes a value that was computed from a read at this time.
    Update {
        /// When the store was read, in true time.
        read_at: u64,
    },
}

impl StoreRequest {
    fn read_at(self) -> Option<u64> {
        match self {
            StoreRequest::Update { read_at } => Some(read_at),
            StoreRequest::Read | StoreRequest::Write => None,
        }
    }
}

/// A read or a write in flight.
#[derive(Debug)]
pub struct Write {
    who: ProcessId,
    hold: HoldId,
    name: NameId,
    asked: StoreRequest,
    token: Option<u64>,
    departs: u64,
    answer: Option<(Accepted, u64)>,
    is_answered: bool,
    is_dropped: bool,
    waker: Option<Waker>,
}

impl Write {
    /// Creates a request that leaves its process at this time, under a hold, with or without a token.
    pub fn new(
        who: ProcessId,
        hold: HoldId,
        name: NameId,
        asked: StoreRequest,
        token: Option<u64>,
        departs: u64,
    ) -> Self {
        Write {
            who,
            hold,
            name,
            asked,
            token,
            departs,
            answer: None,
            is_answered: false,
            is_dropped: false,
            waker: None,
        }
    }

    pub(crate) fn who(&self) -> ProcessId {
        self.who
    }

    pub(crate) fn departs(&self) -> u64 {
        self.departs
    }

    /// Returns the history's record of the request and the store's answer, or `None` for a read.
    pub fn written(&self, at: u64, accepted: Accepted) -> Option<Written> {
        (self.asked != StoreRequest::Read).then(|| Written {
            process: self.who.process(),
            hold: self.hold,
            name: self.name,
            at,
            token: self.token,
            read_at: self.asked.read_at(),
            accepted,
        })
    }

    /// Delivers the answer. Returns whether the client no longer waits for it.
    pub fn finish(&mut self) -> bool {
        self.is_answered = true;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
        self.is_dropped
    }

    /// Returns the store's answer and its time. If there is none yet, the task is woken when it arrives.
    pub fn poll(&mut self, cx: &Context<'_>) -> Poll<(Accepted, u64)> {
        match self.answer {
            Some(answer) if self.is_answered => Poll::Ready(answer),
            _ => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Records that the client no longer waits. Returns whether the answer has arrived.
    pub(crate) fn abandon(&mut self) -> bool {
        self.is_dropped = true;
        self.is_answered
    }
}
