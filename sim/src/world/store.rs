//! The resource that a lock protects: it takes writes, and rejects stale tokens if writes carry one.

use std::task::{Context, Poll, Waker};

use crate::history::{Accepted, HoldId, NameId, Written};
use crate::plan::draw::{Draw, Purpose};
use crate::world::id::ProcessId;

/// One store for all clients, with one resource for each name.
#[derive(Debug, Default)]
pub(crate) struct Store {
    latency: Option<Draw>,
    /// The largest token seen, resource by resource.
    largest: Vec<u64>,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Store {
            latency: Some(Draw::new(seed, Purpose::Latency, u64::MAX)),
            largest: Vec::new(),
        }
    }

    /// How long a message to it or from it takes.
    pub(crate) fn latency(&mut self, least: u64, most: u64) -> u64 {
        let draw = self.latency.as_mut();
        draw.map_or(least, |draw| draw.between(least, most))
    }

    /// Takes a read or a write that is on its way.
    pub(crate) fn take(&mut self, write: &mut Write, now: u64) -> Accepted {
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

/// What the store is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreRequest {
    /// Its content. With a token, the store refuses this as it refuses writes, and remembers the token.
    Read,
    /// To take a write that depends on nothing.
    Write,
    /// To take what came of a read at this time.
    Update {
        /// When the store was read.
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

/// A read or a write on its way.
#[derive(Debug)]
pub(crate) struct Write {
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
    /// One that leaves its process at a time, under a hold, with a token or without.
    pub(crate) fn new(
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

    /// What the history knows of it, once the store has taken it at a time; nothing of a read.
    pub(crate) fn written(&self, at: u64, accepted: Accepted) -> Option<Written> {
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

    /// The answer comes. Returns whether no client waits for it.
    pub(crate) fn finish(&mut self) -> bool {
        self.is_answered = true;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
        self.is_dropped
    }

    /// Whether the store did as asked, and when; until that comes, the task is woken when it does.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<(Accepted, u64)> {
        match self.answer {
            Some(answer) if self.is_answered => Poll::Ready(answer),
            _ => {
                self.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// No client waits for it any more. Returns whether it has been answered.
    pub(crate) fn abandon(&mut self) -> bool {
        self.is_dropped = true;
        self.is_answered
    }
}
