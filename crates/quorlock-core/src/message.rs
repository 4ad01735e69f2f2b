//! What is asked of a node, and what it answers: the whole vocabulary.
//!
//! Requests state absolute facts, never increments: "this owner holds this name at count k for lease L", "the count
//! is now k". A node that executes one twice is where it was after the first time.

use std::time::Duration;

use crate::claim_version::{ClaimVersion, ClockMargin};
use crate::fencing::{Fence, Token};
use crate::lease::Lease;
pub use crate::marker::{Check, Shown};
pub use crate::mode::{Access, Channel, MOST_READ_ENTRIES, Mode, QueuePlace};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::millis_of;

/// One request to one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// Record a claim, if the name is free or the claim is the owner's already.
    Acquire(Acquire),
    /// Extend claims that are still their owners'; never makes one.
    Renew(Renew),
    /// Lower the count of a claim, or end it.
    Release(Release),
    /// Say what stands under a name; changes nothing.
    Inspect(Inspect),
    /// Free a name, whichever owner holds it.
    ForceRelease(ForceRelease),
    /// Say which process the node is and what its marker shows, and perhaps change that.
    Probe(Check),
}

/// "The owner holds the name at this count for this lease."
///
/// Granted when the name is free or already the owner's. On a claim that is the owner's already, the TTL becomes the
/// larger of what is left and the lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// What is locked.
    pub name: Name,
    /// In which mode.
    pub access: Access,
    /// For whom.
    pub owner: OwnerId,
    /// The hold count from now on, at least 1.
    pub count: u32,
    /// For how long.
    pub lease: Lease,
    /// How the node chooses the token.
    pub fence: Fence,
    /// How long an unused token counter is kept.
    pub retention: Retention,
    /// How the claim is kept beyond its lease, if it is.
    pub keep: Option<ClockMargin>,
    /// The claim version whose claim this one may replace.
    pub replaces: Option<ClaimVersion>,
    /// Whether the node is to show which process it is, so that its vote can be trusted.
    pub check: Option<Check>,
}

impl Acquire {
    /// For how long the node keeps the claim.
    #[must_use]
    pub fn kept_millis(&self) -> u64 {
        kept_millis(self.lease, self.keep)
    }
}

fn kept_millis(lease: Lease, keep: Option<ClockMargin>) -> u64 {
    let margin = keep.map_or(0, |keep| keep.margin_millis);
    lease.millis().saturating_add(margin)
}

/// "These claims are still their owners'; keep them for this long."
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Renew {
    /// The mode of all claims. Fair claims are renewed as plain ones are.
    pub mode: Mode,
    /// The claims, each answered by itself.
    pub claims: Vec<Claim>,
    /// How long an unused token counter is kept.
    pub retention: Retention,
}

/// One claim of a [`Renew`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// What is locked.
    pub name: Name,
    /// For whom.
    pub owner: OwnerId,
    /// The hold count from now on, at least 1.
    pub count: u32,
    /// For how long: the TTL becomes the larger of what is left and this.
    pub lease: Lease,
    /// The hold's token; the node stores it if it is larger than what it has.
    pub token: Token,
    /// How the claim is kept beyond its lease, if it is. All claims of a request are kept so, or none is.
    pub keep: Option<ClockMargin>,
}

impl Claim {
    /// For how long the node keeps the claim.
    #[must_use]
    pub fn kept_millis(&self) -> u64 {
        kept_millis(self.lease, self.keep)
    }
}

/// "The owner holds the name at this count from now on."
///
/// At count 0 the owner does not wait for it either: a place in the queue of a fair lock ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    /// What is locked.
    pub name: Name,
    /// In which mode.
    pub mode: Mode,
    /// For whom.
    pub owner: OwnerId,
    /// The count that is left; 0 frees the name and wakes a waiter.
    pub count: u32,
}

/// "Who holds the name?"
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inspect {
    /// What may be locked.
    pub name: Name,
}

/// "The name is free from now on, whichever owner holds it."
///
/// For operators. It is the one request that is not owner-checked: the holder learns of it at its next renewal. The
/// token counter stays, so that the next hold gets a larger token. Where no owner holds the name, those at the
/// head of the fair lock's queue who are dead are dropped, or, if none is, the first: it keeps the name from all others
/// until it comes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ForceRelease {
    /// The name to free.
    pub name: Name,
}

/// How long a node keeps the token counter of a name that no client uses.
///
/// A counter shared with Redisson's fenced lock must not expire: Redisson would start again at 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retention {
    /// It expires this many milliseconds after its last use.
    Millis(u64),
    /// It never expires.
    Forever,
}

impl Retention {
    /// A retention of this span.
    #[must_use]
    pub fn of(span: Duration) -> Self {
        Retention::Millis(millis_of(span))
    }
}

/// One node's answer to a request that it executed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// To [`Request::Acquire`].
    Acquire(AcquireReply),
    /// To [`Request::Acquire`] with a [`Check`].
    Checked(AcquireReply, Shown),
    /// To [`Request::Renew`]: one for each claim, in order.
    Renew(Vec<RenewReply>),
    /// To [`Request::Release`].
    Release(ReleaseReply),
    /// To [`Request::Inspect`].
    Inspect(InspectReply),
    /// To [`Request::ForceRelease`].
    ForceRelease(ForceReleaseReply),
    /// To [`Request::Probe`].
    Probe(Shown),
}

/// The answer to [`Acquire`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AcquireReply {
    /// The claim is recorded.
    Granted {
        /// Whether it was there before.
        freshness: Freshness,
        /// The token stored for the name now.
        token: Token,
    },
    /// Another owner holds the name.
    Refused {
        /// What is left of their claim.
        ttl: Ttl,
        /// Its claim version, if it has one and the request has one.
        version: Option<ClaimVersion>,
    },
    /// Others are in front, and the owner has a place in the queue.
    Queued {
        /// What is left of the claim in the way; where there is none, how long the first in the queue has to come.
        ttl: Ttl,
    },
    /// The key is a lock of another mode.
    OtherMode(Mode),
}

/// Whether a granted claim was there before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Freshness {
    /// The name was free.
    Anew,
    /// The claim was the owner's already.
    AlreadyYours,
}

/// What a node still has on a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ttl {
    /// So many milliseconds.
    Millis(u64),
    /// The key has no expiry: another program's, or an operator's doing.
    Unbounded,
}

/// The answer to one [`Claim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RenewReply {
    /// It is the owner's, and extended.
    AlreadyYours {
        /// The token stored for the name now.
        token: Token,
    },
    /// It is not: expired, freed or another owner's.
    NotYours,
}

/// The answer to [`Release`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReleaseReply {
    /// The name is free, and those who wait were woken.
    Freed {
        /// How many other clients listen for that, as far as the node knows. They wait for the name, or did so a moment
        /// ago.
        told: u32,
    },
    /// The claim stays, at the stated count.
    Kept,
    /// It was not the owner's: never was, expired, or released before.
    NotYours,
    /// The claim has ended, or the place in the queue; the name is not free, or was so before.
    Left,
}

impl ReleaseReply {
    /// The name is free, and no other client is known to listen for that.
    pub const FREED: ReleaseReply = ReleaseReply::Freed { told: 0 };
}

/// The answer to [`Inspect`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct InspectReply {
    /// What stands under the name.
    pub found: Found,
    /// How many wait for the fair lock.
    pub waiting: u64,
    /// The token stored for the name, if there is one.
    pub token: Option<Token>,
}

impl InspectReply {
    /// What a node says about a name that it was asked about.
    #[must_use]
    pub fn new(found: Found, waiting: u64, token: Option<Token>) -> Self {
        InspectReply {
            found,
            waiting,
            token,
        }
    }
}

/// What stands under a name, for people to read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Found {
    /// Nothing: the name is free.
    Nothing,
    /// A plain lock, or a fair one.
    Plain {
        /// Whose, as it is written there. A client of other make may write what is no
        /// [`OwnerId`].
        owner: String,
        /// At which hold count.
        count: u64,
        /// What is left of it.
        ttl: Ttl,
    },
    /// A read-write lock.
    ReadWrite {
        /// Who writes, as it is written there, and at which hold count.
        writer: Option<(String, u64)>,
        /// How many read, whose leases have not run out.
        readers: u64,
        /// What is left of it.
        ttl: Ttl,
    },
    /// A key that is no lock at all.
    NotALock,
}

/// The answer to [`ForceRelease`]. A key that is no lock at all is an error, and stays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ForceReleaseReply {
    /// A claim was ended, or a place in the queue in front of all others, and a waiter was woken.
    Freed,
    /// The name was free, and no waiter stood in front.
    WasFree,
}

/// What a node publishes about a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Wake {
    /// The name is free: one waiter may try (payload `0`).
    Unlocked,
    /// A writer left: all waiting readers may try (payload `1`).
    ReadersMayEnter,
}
