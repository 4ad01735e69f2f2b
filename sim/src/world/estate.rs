//! What processes that died have left on nodes, and until when it may stand there.

use std::collections::BTreeMap;

use quorlock::OwnerId;
use quorlock_core::owner::ClientId as Identity;

use crate::history::Process;
use crate::world::id::Seat;

/// The identities of the processes of a run, and what those that died have left.
#[derive(Debug)]
pub(crate) struct Estates {
    watch: EstateWatch,
    identities: BTreeMap<Identity, Stated>,
    /// Each with the time of its death.
    dead: Vec<(Process, u64)>,
    left: Vec<Estate>,
    /// When the first of them is due.
    due: u64,
}

/// Whether processes die in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EstateWatch {
    /// None does, and nothing is noted.
    Off,
    On,
}

/// What an identity has stated so far.
#[derive(Clone, Copy, Debug)]
struct Stated {
    /// Whose it is; `None` if several processes ask under it.
    process: Option<Process>,
    /// The longest time for which a node was told to keep a claim.
    kept_millis: u64,
}

/// What a process that died has left on a node of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estate {
    pub(crate) process: Process,
    pub(crate) died: u64,
    pub(crate) seat: Seat,
    /// The last millisecond of its claims, on the wall clock of the node.
    pub(crate) until: u64,
    /// When it is looked whether they are gone, in true time.
    pub(crate) due: u64,
}

impl Default for Estates {
    fn default() -> Self {
        Estates::new(EstateWatch::Off)
    }
}

impl Estates {
    pub(crate) fn new(watch: EstateWatch) -> Self {
        Estates {
            watch,
            identities: BTreeMap::new(),
            dead: Vec::new(),
            left: Vec::new(),
            due: u64::MAX,
        }
    }

    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watch == EstateWatch::On
    }

    /// Whether something is due by this time.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.due <= now
    }

    /// A process has told a node for how long to keep a claim. Returns when it died, if it has.
    pub(crate) fn state(&mut self, by: Process, owner: OwnerId, kept_millis: u64) -> Option<u64> {
        let stated = self.identities.entry(owner.client).or_insert(Stated {
            process: Some(by),
            kept_millis,
        });
        stated.process = stated.process.filter(|known| *known == by);
        stated.kept_millis = stated.kept_millis.max(kept_millis);
        let dead = self.dead.iter().find(|(process, _)| *process == by);
        dead.map(|(_, died)| *died)
    }

    /// A process dies.
    pub(crate) fn bury(&mut self, process: Process, died: u64) {
        self.dead.push((process, died));
    }

    /// For how long nodes were told to keep claims of a process; `None` if it has stated nothing, or not alone.
    pub(crate) fn kept_millis(&self, process: Process) -> Option<u64> {
        let own = self.identities.values();
        let own = own.filter(|stated| stated.process == Some(process));
        own.map(|stated| stated.kept_millis).max()
    }

    /// Whether a claim is one of a process.
    pub(crate) fn is_of(&self, owner: OwnerId, process: Process) -> bool {
        let stated = self.identities.get(&owner.client);
        stated.is_some_and(|stated| stated.process == Some(process))
    }

    /// It will be looked whether these claims are gone, and not before those of the same process on the same node.
    pub(crate) fn put(&mut self, estate: Estate) {
        let is_same = |known: &Estate| (known.process, known.seat) == (estate.process, estate.seat);
        self.left.retain(|known| !is_same(known));
        self.left.push(estate);
        self.due = self
            .left
            .iter()
            .map(|known| known.due)
            .min()
            .unwrap_or(u64::MAX);
    }

    /// Takes what is due by this time.
    pub(crate) fn take_due(&mut self, now: u64) -> Vec<Estate> {
        let left = std::mem::take(&mut self.left);
        let (due, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|left| left.due <= now);
        self.due = later.iter().map(|left| left.due).min().unwrap_or(u64::MAX);
        self.left = later;
        due
    }
}
