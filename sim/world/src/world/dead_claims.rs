//! Claims that dead processes left on nodes, and the deadline by which each must be gone.

use std::collections::BTreeMap;

use quorlock::OwnerId;
use quorlock_core::owner::ClientId as Identity;

use crate::history::Process;
use crate::world::id::Seat;

/// The identities of a run's processes, and the claims that dead processes left.
#[derive(Debug)]
pub(crate) struct DeadClaims {
    watch: DeadClaimsWatch,
    identities: BTreeMap<Identity, Stated>,
    /// The processes that died, each with the time of its death.
    dead: Vec<(Process, u64)>,
    left: Vec<DeadClaim>,
    /// When the first entry of `left` is due.
    due: u64,
}

/// Whether processes can die in a run, so that their claims are watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DeadClaimsWatch {
    /// No process can die, and nothing is recorded.
    Off,
    On,
}

/// What an identity has requested from nodes so far.
#[derive(Clone, Copy, Debug)]
struct Stated {
    /// The process with this identity, or `None` if several processes use it.
    process: Option<Process>,
    /// The longest time for which a node was asked to keep a claim, in milliseconds.
    kept_millis: u64,
}

/// The claims that a dead process left on one node of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadClaim {
    pub process: Process,
    pub died: u64,
    pub seat: Seat,
    /// The last millisecond of the claims, on the node's wall clock.
    pub until: u64,
    /// When the node is checked for these claims, in true time.
    pub due: u64,
}

impl Default for DeadClaims {
    fn default() -> Self {
        DeadClaims::new(DeadClaimsWatch::Off)
    }
}

impl DeadClaims {
    pub(crate) fn new(watch: DeadClaimsWatch) -> Self {
        DeadClaims {
            watch,
            identities: BTreeMap::new(),
            dead: Vec::new(),
            left: Vec::new(),
            due: u64::MAX,
        }
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch == DeadClaimsWatch::On
    }

    /// Returns whether an entry is due by this time.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.due <= now
    }

    /// Records for how long a process asked a node to keep a claim. Returns when the process died, if it has died.
    pub(crate) fn state(&mut self, by: Process, owner: OwnerId, kept_millis: u64) -> Option<u64> {
        let stated = self.identities.entry(owner.client).or_insert(Stated {
            process: Some(by),
            kept_millis,
        });
        stated.process = stated.process.filter(|known| *known == by);
        stated.kept_millis = stated.kept_millis.max(kept_millis);
        self.died(by)
    }

    /// Returns when a process died, if it has died.
    pub(crate) fn died(&self, process: Process) -> Option<u64> {
        let dead = self.dead.iter().find(|(dead, _)| *dead == process);
        dead.map(|(_, died)| *died)
    }

    /// Records the death of a process.
    pub(crate) fn bury(&mut self, process: Process, died: u64) {
        self.dead.push((process, died));
    }

    /// Returns the longest time for which nodes were asked to keep a claim of this process. Returns `None` if the
    /// process has requested nothing, or shares its identity with another process.
    pub(crate) fn kept_millis(&self, process: Process) -> Option<u64> {
        let own = self.identities.values();
        let own = own.filter(|stated| stated.process == Some(process));
        own.map(|stated| stated.kept_millis).max()
    }

    /// Returns whether a claim belongs to a process.
    pub(crate) fn is_of(&self, owner: OwnerId, process: Process) -> bool {
        let stated = self.identities.get(&owner.client);
        stated.is_some_and(|stated| stated.process == Some(process))
    }

    /// Schedules the check that these claims are gone. It replaces the check for the same process and node.
    pub(crate) fn put(&mut self, dead_claim: DeadClaim) {
        let is_same = |known: &DeadClaim| {
            (known.process, known.seat) == (dead_claim.process, dead_claim.seat)
        };
        self.left.retain(|known| !is_same(known));
        self.left.push(dead_claim);
        self.due = self
            .left
            .iter()
            .map(|known| known.due)
            .min()
            .unwrap_or(u64::MAX);
    }

    /// Takes the entries that are due by this time.
    pub(crate) fn take_due(&mut self, now: u64) -> Vec<DeadClaim> {
        let left = std::mem::take(&mut self.left);
        let (due, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|left| left.due <= now);
        self.due = later.iter().map(|left| left.due).min().unwrap_or(u64::MAX);
        self.left = later;
        due
    }
}
