//! Findings: what was observed to be wrong, or may be, during a run.

use crate::serial::Serialize;

use super::{HoldId, NameId, Process};

/// A node changed or removed a claim at the request of a client that did not own it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Theft {
    /// When the node did it, in nanoseconds of true time.
    pub at: u64,
    /// The node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
    /// The process that sent the request.
    pub by: Process,
}

/// A request that stated a shorter lease than an earlier statement of the same owner, by number, executed on any
/// node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShortenedLease {
    /// When the second of the two requests was executed, in nanoseconds of true time.
    pub at: u64,
    /// The name of the claim.
    pub name: NameId,
    /// The process that sent both requests.
    pub by: Process,
    /// The number of the request with the smaller number, and its lease in milliseconds.
    pub before: (u64, u64),
    /// The number of the request with the larger number, and its lease in milliseconds.
    pub after: (u64, u64),
}

/// A statement about a hold that turned out wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BrokenStatement {
    /// When that was observed, in nanoseconds of true time.
    pub at: u64,
    /// The process that has the hold.
    pub process: Process,
    /// The hold.
    pub hold: HoldId,
    /// The name of the lock.
    pub name: NameId,
    /// The statement.
    pub said: BeliefStatement,
}

/// A statement about a hold, which a checker may refute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefStatement {
    /// The hold was acquired: the guard that was returned holds it.
    Acquired,
    /// The hold was extended by this lease, counted from when the extension was requested.
    Extended,
    /// The hold is valid until a time. Where one node decides, nothing that the client receives later makes that time
    /// earlier.
    ValidUntil,
    /// The hold was released: too few nodes still have a claim of it to keep another client out.
    Released,
    /// The hold is renewed for at most this long (`max_hold`).
    AtMost,
    /// The hold is renewed, so it lasts until it is released: the plan states that nothing prevents it.
    Renewed,
    /// The hold is valid for a lease from when its last request was sent, at least one round trip ago.
    Lease,
    /// The hold was granted to the next waiter in the queue, which has left the queue.
    Served,
}

/// The hold count that a guard reported, and the one that the client expects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    /// The process that has the guard.
    pub process: Process,
    /// The hold.
    pub hold: HoldId,
    /// When the guard reported it, in nanoseconds of true time.
    pub at: u64,
    /// The hold count that the guard reported.
    pub counted: u32,
    /// The number of guards that existed.
    pub expected: u32,
}

/// A claim that a node still had after every client had ended and every lease had run out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Leftover {
    /// The node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
}

/// A claim of a dead process that a node still had after the claim's TTL.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Overdue {
    /// When that was observed, in nanoseconds of true time.
    pub at: u64,
    /// The node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
    /// The process that died.
    pub process: Process,
    /// When the process died, in nanoseconds of true time.
    pub died: u64,
}
