//! Findings: observations of a run that are wrong, or may be.

use serde::Serialize;

use super::{HoldId, NameId, Process};

/// A node changed or removed a claim at the request of a client that did not own it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Theft {
    /// When the node executed the request, in nanoseconds of true time.
    pub at: u64,
    /// The index of the node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
    /// The process that sent the request.
    pub by: Process,
}

/// Two requests of one owner, where the one with the larger number stated a shorter lease. They may have been executed on
/// different nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShortenedLease {
    /// When the second of the two requests was executed, in nanoseconds of true time.
    pub at: u64,
    /// The name of the claim.
    pub name: NameId,
    /// The process that sent both requests.
    pub by: Process,
    /// The smaller of the two numbers, with the lease of that request in milliseconds.
    pub before: (u64, u64),
    /// The larger of the two numbers, with the lease of that request in milliseconds.
    pub after: (u64, u64),
}

/// A statement about a hold that turned out to be wrong.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BrokenStatement {
    /// When this was observed, in nanoseconds of true time.
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
    /// The hold was acquired: the guard that was returned holds the lock.
    Acquired,
    /// The hold was extended by this lease, counted from when the extension was requested.
    Extended,
    /// The hold is valid until a time. If one node decides, nothing that the client receives later makes that time
    /// earlier.
    ValidUntil,
    /// The hold was released: too few nodes still have a claim of it to keep another client out.
    Released,
    /// The hold is renewed for at most this long (`max_hold`).
    AtMost,
    /// The hold is renewed and lasts until it is released, because the plan states that nothing prevents its renewals.
    Renewed,
    /// The hold is valid for a lease, counted from when its last request was sent, which was at least one round trip
    /// ago.
    Lease,
    /// The hold was granted to the next waiter in the queue, which has left the queue.
    Served,
}

/// The hold count that a guard reported, and the count that the client expects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    /// The process that has the guard.
    pub process: Process,
    /// The hold.
    pub hold: HoldId,
    /// When the guard reported its count, in nanoseconds of true time.
    pub at: u64,
    /// The hold count that the guard reported.
    pub counted: u32,
    /// The number of guards that existed.
    pub expected: u32,
}

/// A claim that a node still had after every client had ended and every lease had run out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Leftover {
    /// The index of the node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
}

/// A claim of a dead process that a node still had after the claim's TTL.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Overdue {
    /// When this was observed, in nanoseconds of true time.
    pub at: u64,
    /// The index of the node.
    pub node: u16,
    /// The name of the claim.
    pub name: NameId,
    /// The process that died.
    pub process: Process,
    /// When the process died, in nanoseconds of true time.
    pub died: u64,
}
