//! The history of a run, which the checkers judge: its events in true time, by process.

mod findings;
pub mod own;
pub mod recording;

use std::fmt;

use quorlock::OwnerId;
use serde::Serializer;

use serde::{Deserialize, Serialize};

pub use findings::{
    BeliefStatement, BrokenStatement, Count, Leftover, Overdue, ShortenedLease, Theft,
};
use own::{Mark, ResourceCall, StatedProperty};

/// A name, as an index into [`History::names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct NameId(pub u16);

/// A hold, numbered in the order in which holds were won. All guards of a hold share its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct HoldId(pub u32);

impl HoldId {
    /// The value for operations that won no hold.
    pub const NONE: HoldId = HoldId(u32::MAX);
}

/// A client process. After each restart, the client has a new process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Process {
    /// The number of the client, from 0.
    pub client: u16,
    /// How many times the client had been restarted before this process.
    pub restarts: u16,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.restarts {
            0 => write!(f, "client {}", self.client),
            n => write!(f, "client {} (restarted, {n})", self.client),
        }
    }
}

/// How a hold excludes other clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// No other client may hold the lock.
    #[default]
    Alone,
    /// Other readers may hold the lock.
    Read,
    /// No other client may hold the lock, but the writer itself may also read.
    Write,
}

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Acquires a lock, and waits if it is held.
    Acquire,
    /// Tries to acquire a lock, without waiting.
    Try,
    /// Re-enters a hold.
    Reenter,
    /// Extends a lease.
    Extend,
    /// Releases one guard.
    Release,
    /// Writes to the store.
    Write,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The operation succeeded.
    Ok,
    /// The operation failed and had no effect.
    Fail,
    /// The operation may have had its effect, or may still have it.
    Indeterminate,
}

/// An operation of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Operation {
    /// The process that performs the operation.
    pub process: Process,
    /// The kind of operation.
    pub action: Action,
    /// The names that the operation concerns, one bit each.
    pub names: u64,
    /// The hold that the operation won or belongs to.
    pub hold: HoldId,
    /// When the operation began, in nanoseconds of true time.
    pub invoked: u64,
    /// When the operation ended, in nanoseconds of true time, or `u64::MAX` if it did not end.
    pub completed: u64,
    /// The outcome of the operation.
    pub outcome: Outcome,
    /// The token of the first name that the operation won, or the token that a write carried; 0 if there is none.
    pub token: u64,
}

/// A hold that was won. There is one entry for each name of the hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Grant {
    /// The hold.
    pub hold: HoldId,
    /// The process that won the hold.
    pub process: Process,
    /// The identity under which nodes store the hold's claims.
    #[serde(serialize_with = "as_text")]
    pub owner: OwnerId,
    /// The name that was won.
    pub name: NameId,
    /// When the acquire began, in nanoseconds of true time.
    pub invoked: u64,
    /// When the hold was won, in nanoseconds of true time.
    pub won: u64,
    /// The fencing token of the hold for this name.
    pub token: u64,
    /// How the hold excludes other clients.
    pub access: Access,
}

/// A hold that continues another one, whose client has handed it over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Adoption {
    /// The owner of the hold before.
    #[serde(serialize_with = "as_text")]
    pub before: OwnerId,
    /// The owner of the hold that continues it.
    #[serde(serialize_with = "as_text")]
    pub owner: OwnerId,
}

/// A visit of a client to a section that a name protects.
///
/// From `won` to `believed`, the client believed that it held the lock: it received the guard at `won`, found the lock
/// held at `believed`, and a lost hold stays lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Section {
    /// The process inside the section.
    pub process: Process,
    /// The hold under which the process entered.
    pub hold: HoldId,
    /// The name that protects the section.
    pub name: NameId,
    /// When the guard was won, in nanoseconds of true time. If the acquisition was not recorded, when the process
    /// entered.
    pub won: u64,
    /// When the process entered, in nanoseconds of true time.
    pub entered: u64,
    /// When the process last checked and found the lock held, or `None` if it never did.
    pub believed: Option<u64>,
    /// When the process left, or `u64::MAX` if it did not leave.
    pub left: u64,
    /// How the hold excludes other clients.
    pub access: Access,
    /// For a reader that also writes, the write hold of the same owner. Otherwise [`HoldId::NONE`].
    pub under: HoldId,
}

/// A write that the store accepted or rejected. Writes are in the order in which they reached the store.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Written {
    /// The process that sent the write.
    pub process: Process,
    /// The hold under which the write was sent.
    pub hold: HoldId,
    /// The name whose resource was written.
    pub name: NameId,
    /// When the write reached the store, in nanoseconds of true time.
    pub at: u64,
    /// The fencing token of the write, or `None` if it had none.
    pub token: Option<u64>,
    /// For an update, when the value that it depends on was read, in nanoseconds of true time. `None` for other
    /// writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<u64>,
    /// Whether the store accepted the write.
    pub accepted: Accepted,
}

/// The store's decision on a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// The store accepted the write.
    Yes,
    /// The store rejected the write, because its token was smaller than one seen before.
    No,
}

/// A term of a leader.
///
/// From `elected` to `believed`, the process believed that it led, because a term that has ended stays ended. A
/// process that learned of its election too late, because it was paused, never believed that it led.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reign {
    /// The hold under which the process leads.
    pub hold: HoldId,
    /// The process that leads.
    pub process: Process,
    /// The name of the leadership.
    pub name: NameId,
    /// The number of the term.
    pub term: u64,
    /// When the process learned that it leads, in nanoseconds of true time.
    pub elected: u64,
    /// When the process last checked and found that it leads, or `None` if it never did.
    pub believed: Option<u64>,
    /// When the process stopped working as the leader, or `u64::MAX` if it did not.
    pub ended: u64,
}

/// A node's answer about a fair lock or a read-write lock. Recorded only in the lane that sees the answers of nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockAnswer {
    /// When the node answered, in nanoseconds of true time.
    pub at: u64,
    /// The index of the node.
    pub node: u16,
    /// How many times the node had lost its data before.
    pub life: u32,
    /// The reading of the node's wall clock, in milliseconds.
    pub wall: u64,
    /// The name of the lock.
    pub name: NameId,
    /// The process that receives the answer.
    pub process: Process,
    /// The owner in whose name the process sent the request.
    #[serde(serialize_with = "as_text")]
    pub owner: OwnerId,
    /// The content of the answer.
    pub answer: Answered,
}

fn as_text<S: Serializer>(owner: &OwnerId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(owner)
}

/// The content of a node's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// The waiter has a place in the queue until the node's clock passes `until`. After that, the node considers it
    /// dead.
    Queued {
        /// The last millisecond of the place, on the node's clock.
        until: u64,
    },
    /// The owner holds the fair lock from now on.
    Served,
    /// The owner holds the lock for reading, either newly or still.
    Reads {
        /// The last millisecond of the claim, on the node's clock.
        until: u64,
    },
    /// The owner holds the lock for writing, either newly or still.
    Writes {
        /// The last millisecond of the claim, on the node's clock.
        until: u64,
    },
    /// The owner was refused a read-write lock.
    KeptOut,
    /// The owner has released what it held in this mode, or no longer waits.
    Left(Access),
}

/// A bound on how long a lock may be idle while a client waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Idle {
    /// The bound, in nanoseconds.
    pub bound: u64,
    /// The end of the period that is checked, in nanoseconds of true time.
    pub until: u64,
}

/// A run that did not end by itself and was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Endless {
    /// When the run was stopped, in nanoseconds of true time.
    pub at: u64,
    /// The process that ran last, if any.
    pub process: Option<Process>,
}

/// The beginning of a fault whose time or target the plan leaves open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Began {
    /// The index of the fault in the plan, from 0.
    pub fault: usize,
    /// When the fault began, in nanoseconds of true time.
    pub at: u64,
    /// The client that the fault struck, if it is a fault of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<u16>,
}

/// The history of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct History {
    /// The names of the locks.
    pub names: Vec<String>,
    /// The operations, in the order in which they began.
    pub operations: Vec<Operation>,
    /// The holds that were won, in the order in which they were, with one entry for each name.
    pub grants: Vec<Grant>,
    /// The faults whose time or target was open in the plan, in the order in which they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Began>,
    /// The visits to sections, in the order of entry.
    pub sections: Vec<Section>,
    /// The writes, in the order in which the store received them.
    pub writes: Vec<Written>,
    /// The terms of leaders, in the order of election.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reigns: Vec<Reign>,
    /// Holds that clients have adopted from others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub adoptions: Vec<Adoption>,
    /// The hold counts that were observed, in order.
    pub counts: Vec<Count>,
    /// The claims that nodes changed or removed for another process, in order.
    pub thefts: Vec<Theft>,
    /// The requests that shortened a lease, in the order in which nodes executed them.
    pub shrunk: Vec<ShortenedLease>,
    /// The statements about holds that turned out to be wrong, in the order in which this was observed.
    pub broken: Vec<BrokenStatement>,
    /// The answers about fair and read-write locks, in order.
    pub turns: Vec<LockAnswer>,
    /// The claims of dead processes that outlived their TTL, in the order in which they were observed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overdue: Vec<Overdue>,
    /// The claims that were left over at the end of the run.
    pub leftovers: Vec<Leftover>,
    /// The marks that a user's own clients recorded, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The properties that a user's code states, in the order in which they were first evaluated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedProperty>,
    /// The names of a user's own resources, in the order in which they were created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The calls to these resources, in the order in which they were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<ResourceCall>,
    /// When and where the run was stopped, if it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endless: Option<Endless>,
    /// The processes that died, each with the time of its death.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<(Process, u64)>,
    /// When all faults had ended, in nanoseconds of true time.
    pub healed: u64,
    /// The time by which the lock must have been acquired after `healed`.
    pub progress_due: u64,
    /// Whether progress is demanded. It is if the run lasts until `progress_due`.
    pub demands_progress: bool,
    /// The bound on the time between acquisitions of the lock while a client waits. It applies until clients begin no
    /// more work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_within: Option<Idle>,
    /// The bound on the time for which a released lock stays free while a client waits for it. It applies until
    /// clients begin no more work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_within: Option<Idle>,
    /// The number of holds that were won.
    pub holds: u32,
}

impl History {
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.operations.clear();
        self.grants.clear();
        self.began.clear();
        self.sections.clear();
        self.writes.clear();
        self.reigns.clear();
        self.adoptions.clear();
        self.counts.clear();
        self.thefts.clear();
        self.shrunk.clear();
        self.broken.clear();
        self.turns.clear();
        self.overdue.clear();
        self.died.clear();
        self.leftovers.clear();
        self.marks.clear();
        self.stated.clear();
        self.resources.clear();
        self.asked.clear();
        self.endless = None;
        self.holds = 0;
    }

    /// Returns when an operation ended, by itself or with its process.
    #[must_use]
    pub fn ended(&self, op: &Operation) -> u64 {
        let mut died = self.died.iter();
        let died = died.find(|(process, _)| *process == op.process);
        died.map_or(op.completed, |(_, at)| op.completed.min(*at))
    }

    /// Returns the index of a name, and adds the name if it is new.
    pub fn name(&mut self, name: &str) -> NameId {
        let place = self.names.iter().position(|known| known == name);
        let place = place.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        NameId(u16::try_from(place).unwrap_or(u16::MAX))
    }

    /// Returns the visits to sections. The work of a leader during its term counts as one visit.
    pub fn stays(&self) -> impl Iterator<Item = Section> + '_ {
        let reigns = self.reigns.iter().map(|reign| Section {
            process: reign.process,
            hold: reign.hold,
            name: reign.name,
            won: reign.elected,
            entered: reign.elected,
            believed: reign.believed,
            left: reign.ended,
            access: Access::Alone,
            under: HoldId::NONE,
        });
        self.sections.iter().cloned().chain(reigns)
    }

    /// Returns the text of a name.
    #[must_use]
    pub fn text(&self, name: NameId) -> &str {
        let name = self.names.get(usize::from(name.0));
        name.map_or("?", String::as_str)
    }
}
