//! The resource that a lock protects: it takes writes, and rejects stale tokens if writes carry one.

use std::task::Waker;

use crate::history::{Accepted, HoldId, NameId};
use crate::plan::draw::{Draw, Purpose};
use crate::world::client::Who;

/// One store for all clients, with one resource for each name.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) latency: Option<Draw>,
    /// The largest token seen, resource by resource.
    pub(crate) largest: Vec<u64>,
}

impl Store {
    pub(crate) fn new(seed: u64) -> Self {
        Store {
            latency: Some(Draw::new(seed, Purpose::Latency, u64::MAX)),
            largest: Vec::new(),
        }
    }

    pub(crate) fn accept(&mut self, name: NameId, token: Option<u64>) -> Accepted {
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
pub(crate) enum Asked {
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

impl Asked {
    pub(crate) fn read_at(self) -> Option<u64> {
        match self {
            Asked::Update { read_at } => Some(read_at),
            Asked::Read | Asked::Write => None,
        }
    }
}

/// A read or a write on its way.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) who: Who,
    pub(crate) hold: HoldId,
    pub(crate) name: NameId,
    pub(crate) asked: Asked,
    pub(crate) token: Option<u64>,
    pub(crate) departs: u64,
    pub(crate) answer: Option<(Accepted, u64)>,
    pub(crate) is_answered: bool,
    pub(crate) is_dropped: bool,
    pub(crate) waker: Option<Waker>,
}
