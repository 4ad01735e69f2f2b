//! The observable course of a run: messages, claims on nodes, processes that were paused or down, and the readings of
//! clocks.
//!
//! Only runs for reports are recorded. Recording does not change the run.

mod message;

use std::collections::BTreeMap;

use quorlock::{Name, OwnerId};

use crate::history::{History, NameId, Process};

pub use message::{Message, MessageSort};

/// The recording of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recording {
    /// The messages, in the order in which they were sent.
    pub messages: Vec<Message>,
    /// The claims on nodes, in the order in which they began.
    pub claims: Vec<Claim>,
    /// The periods in which processes were paused or down, in the order in which they began.
    pub states: Vec<Absence>,
    /// For each clock that was ever wrong: the times at which its error changed, each with the error in nanoseconds,
    /// positive if the clock is ahead.
    pub clocks: BTreeMap<ClockId, Vec<(u64, i64)>>,
    pub(crate) owners: BTreeMap<OwnerId, Process>,
    pub(crate) names: Vec<Name>,
    /// Acquired names that the history did not know when they were acquired. During the run, their ids begin at
    /// `FIRST_ACQUIRED`: if the history learned them, the run would differ from one that is not recorded.
    pub acquired: Vec<Name>,
    /// The open claims of a name on a node, as indices into `claims`. There are several if several clients read.
    pub(crate) open_claims: BTreeMap<(u16, NameId), Vec<usize>>,
    pub(crate) open_states: BTreeMap<ProcessPlace, usize>,
    /// The reading of each client's monotonic clock at the beginning of the run.
    pub(crate) uptimes: Vec<u64>,
}

/// A client or a node, numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum ProcessPlace {
    Client(u16),
    Node(u16),
}

/// A clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ClockId {
    /// The monotonic clock of a client, which measures leases.
    Monotonic(u16),
    /// The wall clock of a client.
    Wall(u16),
    /// The wall clock of a node.
    Node(u16),
}

/// A claim on a node, with the period in which the node had it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The index of the node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
    /// The process that made the claim, if known.
    pub owner: Option<Process>,
    /// When the claim began, in nanoseconds of true time.
    pub from: u64,
    /// When the claim ended, or `u64::MAX` if the node still had it at the end of the run.
    pub until: u64,
    /// The identity of the round that made the claim.
    pub identity: Option<OwnerId>,
    /// When the claim would expire, each time that it changed. The first is that of the beginning.
    pub expiries: Vec<Expiry>,
}

/// When a claim would expire from an instant on, if the node's clock kept its rate of that instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expiry {
    /// Since when, in nanoseconds of true time.
    pub since: u64,
    /// When the claim would expire, in nanoseconds of true time, or `u64::MAX` if never.
    pub expires: u64,
}

impl Claim {
    /// Returns when the claim would have expired at the end of its period.
    #[must_use]
    pub fn expires(&self) -> u64 {
        self.expiries.last().map_or(u64::MAX, |last| last.expires)
    }

    /// Records that the claim would expire at this time from now on. Differences by the rounding of times are none.
    pub(crate) fn expire(&mut self, since: u64, expires: u64) {
        match self.expiries.last_mut() {
            Some(last) if last.expires.abs_diff(expires) < FINE => last.expires = expires,
            _ => self.expiries.push(Expiry { since, expires }),
        }
    }
}

/// A period in which a process did not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Absence {
    /// The client or the node that did not run.
    pub place: ProcessPlace,
    /// The reason.
    pub status: Status,
    /// When the period began, in nanoseconds of true time.
    pub from: u64,
    /// When the period ended, or `u64::MAX` if it lasted until the end of the run.
    pub until: u64,
}

/// The reason why a client does nothing, or why a node does not answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Status {
    Paused,
    Down,
    Replica,
}

/// The smallest step of a clock, or of the expiry of a claim, in nanoseconds, that is recorded by itself.
const FINE: u64 = 200_000;

/// The id of the first acquired name that the history does not know. Plans have fewer names.
pub(crate) const FIRST_ACQUIRED: u16 = 1 << 15;

impl Recording {
    /// Records an acquired name that the history does not know.
    pub fn acquire(&mut self, name: &Name) {
        if !self.acquired.contains(name) {
            self.acquired.push(name.clone());
        }
    }

    /// Adds the acquired names to the history of the run, which has ended.
    pub fn name_acquired(&mut self, history: &mut History) {
        let acquired = std::mem::take(&mut self.acquired).into_iter();
        for (name, number) in acquired.zip(FIRST_ACQUIRED..) {
            let known = history.name(&name.to_string());
            let theirs = self.claims.iter_mut();
            for claim in theirs.filter(|claim| claim.name == NameId(number)) {
                claim.name = known;
            }
        }
    }

    /// Ends the recorded claims of a name on a node that the node no longer has.
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
                claim.until = claim.expires().min(at);
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
