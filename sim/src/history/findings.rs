//! What was seen to be wrong, or may be, while a run went on.

use serde::Serialize;

use super::{HoldId, NameId, Process};

/// A node changed or removed a claim at the request of a client whose it was not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Theft {
    /// When.
    pub at: u64,
    /// Where.
    pub node: u16,
    /// Of which name.
    pub name: NameId,
    /// At whose request.
    pub by: Process,
}

/// A request that a node executed stated a shorter lease than one of its owner with a smaller number, on whatever node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShortenedLease {
    /// When the second of the two was executed.
    pub at: u64,
    /// Of which name.
    pub name: NameId,
    /// Whose.
    pub by: Process,
    /// The number and the lease in milliseconds of the one with the smaller number.
    pub before: (u64, u64),
    /// The same of the one with the larger number.
    pub after: (u64, u64),
}

/// A hold is not worth what was said of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BrokenStatement {
    /// When that was seen.
    pub at: u64,
    /// Whose hold.
    pub process: Process,
    /// Which hold.
    pub hold: HoldId,
    /// Of which name.
    pub name: NameId,
    /// What was said of it.
    pub said: BeliefStatement,
}

/// What is said of a hold, and may be wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefStatement {
    /// It was acquired: the guard that was given out holds it.
    Acquired,
    /// It was extended by this lease, from when that was asked for.
    Extended,
    /// It is valid until a time. What is heard later makes that no earlier where one node decides.
    ValidUntil,
    /// It was released: too few nodes still have a claim of it for another client to be kept out.
    Released,
    /// It is renewed for this long at most (`max_hold`).
    AtMost,
    /// It is renewed, so it lasts until it is released: the plan says that nothing is in the way.
    Renewed,
    /// It is valid for a lease from when its last request was sent, and that was a round trip ago at least.
    Lease,
    /// It was granted to the next in the queue, who stands there no more.
    Served,
}

/// What a guard said of its hold, and what the client knows it to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    /// Whose.
    pub process: Process,
    /// Of which hold.
    pub hold: HoldId,
    /// When.
    pub at: u64,
    /// What it said.
    pub counted: u32,
    /// How many guards were out.
    pub expected: u32,
}

/// A claim that stood when everybody had gone and every lease had run out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Leftover {
    /// Where.
    pub node: u16,
    /// Of which name.
    pub name: NameId,
}

/// A claim of a process that died stood on a node when its TTL was over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Overdue {
    /// When that was seen.
    pub at: u64,
    /// Where.
    pub node: u16,
    /// Of which name.
    pub name: NameId,
    /// Whose.
    pub process: Process,
    /// When the process died.
    pub died: u64,
}
