//! What happened, as the checkers see it: in true time, by who did it.

mod findings;
pub mod own;
pub mod recording;

use std::fmt;

use quorlock::OwnerId;
use serde::{Deserialize, Serialize, Serializer};

pub use findings::{
    BeliefStatement, BrokenStatement, Count, Leftover, Overdue, ShortenedLease, Theft,
};
use own::{Mark, ResourceCall, StatedProperty};

/// A name, by its place in [`History::names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct NameId(pub u16);

/// One hold, numbered in the order in which they were won. The guards of a hold share it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(transparent)]
pub struct HoldId(pub u32);

impl HoldId {
    /// Of an operation that won none.
    pub const NONE: HoldId = HoldId(u32::MAX);
}

/// A client process. Restarted, it is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Which client, from 0.
    pub client: u16,
    /// How often it was started before.
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

/// In which way a hold keeps others out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// No other client is inside.
    #[default]
    Alone,
    /// Others may read.
    Read,
    /// No other client is inside, but the writer may read as well.
    Write,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Acquiring, patiently.
    Acquire,
    /// Acquiring, without waiting.
    Try,
    /// Entering a hold once more.
    Reenter,
    /// Extending a lease.
    Extend,
    /// Giving one guard back.
    Release,
    /// Writing to the store.
    Write,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As asked.
    Ok,
    /// It did not happen.
    Fail,
    /// It may have happened, or may yet.
    Indeterminate,
}

/// One operation of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Operation {
    /// Whose.
    pub process: Process,
    /// What.
    pub action: Action,
    /// Of which names: bit by bit.
    pub names: u64,
    /// The hold it won or belongs to.
    pub hold: HoldId,
    /// When it began, in nanoseconds of true time.
    pub invoked: u64,
    /// When it ended; `u64::MAX` if it did not.
    pub completed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The token of the first name it won, or that a write carried; 0 for none.
    pub token: u64,
}

/// A hold that was won, one entry for each of its names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Grant {
    /// Which hold.
    pub hold: HoldId,
    /// Whose.
    pub process: Process,
    /// The identity under which the nodes have it.
    #[serde(serialize_with = "as_text")]
    pub owner: OwnerId,
    /// Of which name.
    pub name: NameId,
    /// When it was asked for.
    pub invoked: u64,
    /// When it was won.
    pub won: u64,
    /// Its token for this name.
    pub token: u64,
    /// In which way it keeps others out.
    pub access: Access,
}

/// A stay inside a section that a name protects.
///
/// The client believed to hold the lock from `won` to `believed`: it was given the guard, and found it held at the
/// later moment, and a hold that was lost stays lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Section {
    /// Whose.
    pub process: Process,
    /// Under which hold.
    pub hold: HoldId,
    /// Which name.
    pub name: NameId,
    /// When its guard was won; when it went in, of an acquisition that was not recorded.
    pub won: u64,
    /// When it went in.
    pub entered: u64,
    /// When it last looked and found the lock held; `None` if it never did.
    pub believed: Option<u64>,
    /// When it went out; `u64::MAX` if it did not.
    pub left: u64,
    /// In which way its hold keeps others out.
    pub access: Access,
    /// The hold of the same owner who writes, of one who reads beside that; [`HoldId::NONE`] of all others.
    pub under: HoldId,
}

/// A write that the store took or rejected, in the order in which they came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Written {
    /// Whose.
    pub process: Process,
    /// Under which hold.
    pub hold: HoldId,
    /// What was written: the resource of this name.
    pub name: NameId,
    /// When it came to the store.
    pub at: u64,
    /// With which token; `None` for a write without.
    pub token: Option<u64>,
    /// When the store was read, of an update: what is written came of that. `None` for a write that depends on nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_at: Option<u64>,
    /// Whether the store took it.
    pub accepted: Accepted,
}

/// What a store did with a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// It is written.
    Yes,
    /// Its token was smaller than one seen before.
    No,
}

/// One term of a leader.
///
/// It believed to lead from `elected` to `believed`: a term that is over stays over. One that was told of its election too
/// late, because it stood still, never believed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reign {
    /// Under which hold.
    pub hold: HoldId,
    /// Who leads.
    pub process: Process,
    /// Under which name.
    pub name: NameId,
    /// Its term.
    pub term: u64,
    /// When it was told that it leads.
    pub elected: u64,
    /// When it last found that it leads; `None` if it never did.
    pub believed: Option<u64>,
    /// When it stopped working; `u64::MAX` if it did not.
    pub ended: u64,
}

/// What a node answered about a fair lock or a read-write lock, in the lane that knows what nodes answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LockAnswer {
    /// When.
    pub at: u64,
    /// Where.
    pub node: u16,
    /// How often the node had forgotten what it had.
    pub life: u32,
    /// What the clock of the node showed, in milliseconds.
    pub wall: u64,
    /// Of which name.
    pub name: NameId,
    /// To whom.
    pub process: Process,
    /// As whom they ask.
    #[serde(serialize_with = "as_text")]
    pub owner: OwnerId,
    /// What.
    pub answer: Answered,
}

fn as_text<S: Serializer>(owner: &OwnerId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(owner)
}

/// What a node answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// There is a place in the queue, for a waiter that is taken for dead when the node's clock has passed this.
    Queued {
        /// The last millisecond of its place.
        until: u64,
    },
    /// The fair lock is theirs from now on.
    Served,
    /// They read, or go on reading.
    Reads {
        /// The last millisecond of the claim.
        until: u64,
    },
    /// They write, or go on writing.
    Writes {
        /// The last millisecond of the claim.
        until: u64,
    },
    /// They are kept out of a read-write lock.
    KeptOut,
    /// They have given back what they had, or do not wait any more.
    Left(Access),
}

/// How long a lock may stand idle while it is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Idle {
    /// For how long.
    pub bound: u64,
    /// What comes later is not looked at.
    pub until: u64,
}

/// A run that does not end was put an end to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Endless {
    /// When.
    pub at: u64,
    /// The process that went on last, if it was one.
    pub process: Option<Process>,
}

/// A fault of the plan began of which it was not known before when it does, or whom it strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Began {
    /// Which fault of the plan, from 0.
    pub fault: usize,
    /// When, in nanoseconds of true time.
    pub at: u64,
    /// The client that it struck, if it is one of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<u16>,
}

/// What happened in one run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct History {
    /// The names of the locks.
    pub names: Vec<String>,
    /// In the order in which they began.
    pub operations: Vec<Operation>,
    /// In the order in which they were won.
    pub grants: Vec<Grant>,
    /// In the order in which they began.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Began>,
    /// In the order in which they were entered.
    pub sections: Vec<Section>,
    /// In the order in which the store saw them.
    pub writes: Vec<Written>,
    /// In the order in which they were elected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reigns: Vec<Reign>,
    /// In the order in which they were seen.
    pub counts: Vec<Count>,
    /// In the order in which nodes did it.
    pub thefts: Vec<Theft>,
    /// In the order in which nodes executed them.
    pub shrunk: Vec<ShortenedLease>,
    /// In the order in which that was seen.
    pub broken: Vec<BrokenStatement>,
    /// In the order in which nodes answered.
    pub turns: Vec<LockAnswer>,
    /// In the order in which they were seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overdue: Vec<Overdue>,
    /// Looked for at the end.
    pub leftovers: Vec<Leftover>,
    /// What users' own clients said, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Properties of users' own, in the order in which they were first looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedProperty>,
    /// The names of users' own resources, in the order in which they were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// What these were asked, in the order in which it was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<ResourceCall>,
    /// Where the run was put an end to, if it would not have come to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endless: Option<Endless>,
    /// Which processes died, and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub died: Vec<(Process, u64)>,
    /// When the faults had ended.
    pub healed: u64,
    /// By when the lock must have been acquired after that.
    pub progress_due: u64,
    /// Whether the run lasts as long, so that it must have been.
    pub demands_progress: bool,
    /// While a client waits, the lock is acquired at least as often as this, until clients begin no more work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_within: Option<Idle>,
    /// While a client waits for a lock that was released, it stands free for no longer than this, until clients begin no more
    /// work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_within: Option<Idle>,
    /// How many holds were won.
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

    /// The place of a name, which is added if it is new.
    pub(crate) fn name(&mut self, name: &str) -> NameId {
        let place = self.names.iter().position(|known| known == name);
        let place = place.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        NameId(u16::try_from(place).unwrap_or(u16::MAX))
    }

    /// Stays inside sections, and the work of leaders, which is one.
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

    /// The text of a name.
    #[must_use]
    pub fn text(&self, name: NameId) -> &str {
        let name = self.names.get(usize::from(name.0));
        name.map_or("?", String::as_str)
    }
}
