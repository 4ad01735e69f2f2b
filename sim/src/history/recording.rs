//! What can be seen of a run from outside: messages, claims on nodes, who stood still, what clocks showed.
//!
//! Only reports need it, so only their runs record it. A recording changes nothing about a run.

mod message;

use std::collections::BTreeMap;

use quorlock::{Name, OwnerId};

use crate::history::{NameId, Process};

pub use message::{Message, MessageSort};

/// What was recorded of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// In the order in which they were sent.
    pub messages: Vec<Message>,
    /// In the order in which they began.
    pub claims: Vec<Claim>,
    /// In the order in which they began, without those of a process at work.
    pub states: Vec<Absence>,
    /// Of each clock that was ever wrong: when it showed how much too much, in nanoseconds.
    pub clocks: BTreeMap<ClockId, Vec<(u64, i64)>>,
    pub(crate) owners: BTreeMap<OwnerId, Process>,
    pub(crate) names: Vec<Name>,
    /// Of a place the claims that stand: several, where several read.
    pub(crate) open_claims: BTreeMap<(u16, NameId), Vec<usize>>,
    pub(crate) open_states: BTreeMap<ProcessPlace, usize>,
    /// What the monotonic clock of each client showed at the beginning.
    pub(crate) uptimes: Vec<u64>,
}

/// A client or a node, each from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum ProcessPlace {
    Client(u16),
    Node(u16),
}

/// A clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ClockId {
    /// By which a client measures leases.
    Monotonic(u16),
    /// Of a client.
    Wall(u16),
    /// Of a node.
    Node(u16),
}

/// A claim on a node, for as long as it stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Where.
    pub node: u16,
    /// Of which name.
    pub name: NameId,
    /// Whose.
    pub owner: Option<Process>,
    /// Since when.
    pub from: u64,
    /// Until when; `u64::MAX` if it stood at the end.
    pub until: u64,
    /// Which round of its client made it.
    pub(crate) identity: Option<OwnerId>,
    /// When it would expire, as the node's clock runs now.
    pub(crate) expires: u64,
}

/// A process that was not at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    /// Which.
    pub place: ProcessPlace,
    /// How.
    pub status: Status,
    /// Since when.
    pub from: u64,
    /// Until when; `u64::MAX` if so at the end.
    pub until: u64,
}

/// Why a process does nothing, or a node does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Status {
    Paused,
    Down,
    Replica,
}

/// A step of a clock that is smaller than this is not recorded by itself.
const FINE: u64 = 200_000;

impl Recording {
    /// Ends the claims of a place that stand no more.
    pub(crate) fn end_claims(
        &mut self,
        place: (u16, NameId),
        at: u64,
        standing: &[(Option<OwnerId>, u64)],
    ) {
        let Some(open) = self.open_claims.get_mut(&place) else {
            return;
        };
        open.retain(|index| {
            let Some(claim) = self.claims.get_mut(*index) else {
                return false;
            };
            let stands = standing.iter().any(|(who, _)| *who == claim.identity);
            if !stands {
                claim.until = claim.expires.min(at);
            }
            stands
        });
    }

    pub(crate) fn state(&mut self, place: ProcessPlace, status: Option<Status>, at: u64) {
        let open = self.open_states.get(&place).copied();
        let known = open.and_then(|index| self.states.get_mut(index));
        if known.as_ref().map(|state| state.status) == status {
            return;
        }
        if let Some(known) = known {
            known.until = at;
            self.open_states.remove(&place);
        }
        if let Some(status) = status {
            self.open_states.insert(place, self.states.len());
            self.states.push(Absence {
                place,
                status,
                from: at,
                until: u64::MAX,
            });
        }
    }

    pub(crate) fn clock(&mut self, clock: ClockId, at: u64, right: u64, shown: u64) {
        let ahead = shown.cast_signed().wrapping_sub(right.cast_signed());
        match self.clocks.get_mut(&clock) {
            None if ahead == 0 => {}
            None => {
                let before = at.saturating_sub(1);
                self.clocks.insert(clock, vec![(before, 0), (at, ahead)]);
            }
            Some(points) => {
                let last = points.last().map_or(0, |(_, last)| *last);
                if FINE <= last.abs_diff(ahead) {
                    points.push((at, ahead));
                }
            }
        }
    }
}
