//! The requests to a node and its replies.
//!
//! Requests state absolute facts, never increments: "this owner holds this name at count k for lease L", "the count is
//! now k". Executing a request twice has the same effect as executing it once.

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
#[allow(
    clippy::large_enum_variant,
    reason = "most requests are acquires, and each would cost an allocation more"
)]
pub enum Request {
    /// Records a claim, if the name is free or the claim already belongs to the owner.
    Acquire(Acquire),
    /// Extends claims that still belong to their owners; never creates one.
    Renew(Renew),
    /// Lowers the count of a claim, or ends it.
    Release(Release),
    /// Reports what is stored under a name; changes nothing.
    Inspect(Inspect),
    /// Frees a name, whichever owner holds it.
    ForceRelease(ForceRelease),
    /// Reports which process the node is and what its marker shows, and changes the marker if the [`Check`] says so.
    Probe(Check),
}

/// "The owner holds the name at this count for this lease."
///
/// Granted if the name is free or already belongs to the owner. If it already belongs to the owner, its TTL becomes the
/// larger of the remaining TTL and the lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acquire {
    /// Name to lock.
    pub name: Name,
    /// Mode to lock it in, and what only this mode needs.
    pub access: Access,
    /// Owner of the claim.
    pub owner: OwnerId,
    /// Hold count from now on, at least 1.
    pub count: u32,
    /// Lease of the claim.
    pub lease: Lease,
    /// How the node chooses the token.
    pub fence: Fence,
    /// A token of the name that the client has seen since it trusts the node's process ([`Check::trusted`]). If the node is that process
    /// and its counter is at least that, it has not lost it, and hands out the next number, without a look at its clock. A transport may do
    /// the same if its connection is older than [`Acquire::SEEN_WITHIN`]. Only for plain locks, and only with [`Fence::Mint`].
    pub after: Option<Token>,
    /// How long the node keeps an unused token counter.
    pub retention: Retention,
    /// How long the claim is kept beyond its lease; `None` for no longer.
    pub keep: Option<ClockMargin>,
    /// Claim version that this claim may replace.
    pub replaces: Option<ClaimVersion>,
    /// Owner whose hold this claim continues, because it has handed it over. Then the name is granted only if that owner has a
    /// claim there, which passes to the owner of this request in the same step. So of several requests that continue one hold,
    /// one is granted.
    pub continues: Option<OwnerId>,
    /// What the node reports about its process and marker, so that its vote can be trusted; `None` for nothing.
    pub check: Option<Check>,
}

impl Acquire {
    /// How long ago a token of [`Acquire::after`] was chosen by a clock, at most.
    pub const SEEN_WITHIN: Duration = Duration::from_secs(2);

    /// Whether a node with this counter hands out the next number.
    pub(crate) fn is_next_to(&self, stored: Token) -> bool {
        self.access == Access::Plain && self.after.is_some_and(|after| after <= stored)
    }

    /// Returns how long the node keeps the claim, in milliseconds: the lease and the margin.
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
    /// Mode of all claims. Fair claims are renewed like plain ones.
    pub mode: Mode,
    /// Claims to extend, each with its own reply.
    pub claims: Vec<Claim>,
    /// How long the node keeps an unused token counter.
    pub retention: Retention,
}

/// One claim of a [`Renew`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// Locked name.
    pub name: Name,
    /// Owner of the claim.
    pub owner: OwnerId,
    /// Hold count from now on, at least 1.
    pub count: u32,
    /// Lease of the claim. The TTL becomes the larger of the remaining TTL and this lease.
    pub lease: Lease,
    /// Token of the hold. The node stores it if it is larger than the stored one.
    pub token: Token,
    /// How long the claim is kept beyond its lease. Either all claims of a request have a margin, or none has.
    pub keep: Option<ClockMargin>,
}

impl Claim {
    /// Returns how long the node keeps the claim, in milliseconds: the lease and the margin.
    #[must_use]
    pub fn kept_millis(&self) -> u64 {
        kept_millis(self.lease, self.keep)
    }
}

/// "The owner holds the name at this count from now on."
///
/// At count 0 the owner also stops waiting for the name: it loses its place in the queue of a fair lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Release {
    /// Locked name.
    pub name: Name,
    /// Mode of the lock.
    pub mode: Mode,
    /// Owner of the claim.
    pub owner: OwnerId,
    /// Remaining hold count; 0 frees the name and wakes a waiter.
    pub count: u32,
}

/// "Who holds the name?"
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inspect {
    /// Name to inspect.
    pub name: Name,
    /// Whether to find out more about the client of the owner, which costs a node more.
    pub finds_client: bool,
}

impl Inspect {
    /// Returns the request for a name, and nothing about the client of its owner.
    #[must_use]
    pub fn of(name: Name) -> Self {
        Inspect {
            name,
            finds_client: false,
        }
    }
}

/// "The name is free from now on, whichever owner holds it."
///
/// This request is for operators. It is the only one that does not check the owner: the holder learns of it at its next
/// renewal. The token counter stays, so that the next hold gets a larger token. If no owner holds the name, the dead
/// waiters at the head of the fair lock's queue are dropped. If none of them is dead, the first waiter is dropped,
/// because it blocks the name for all others until it acquires it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ForceRelease {
    /// Name to free.
    pub name: Name,
}

/// How long a node keeps the token counter of a name that no client uses.
///
/// A counter that other programs also count with must not expire: they might start again at 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retention {
    /// The counter expires this many milliseconds after its last use.
    Millis(u64),
    /// The counter never expires.
    Forever,
}

impl Retention {
    /// Returns a retention of this duration, rounded up to whole milliseconds.
    #[must_use]
    pub fn of(span: Duration) -> Self {
        Retention::Millis(millis_of(span))
    }
}

/// A node's reply to a request that it executed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reply {
    /// Reply to [`Request::Acquire`].
    Acquire(AcquireReply),
    /// Reply to [`Request::Acquire`] with a [`Check`].
    Checked(AcquireReply, Shown),
    /// Replies to [`Request::Renew`]: one for each claim, in order.
    Renew(Vec<RenewReply>),
    /// Reply to [`Request::Release`].
    Release(ReleaseReply),
    /// Reply to [`Request::Inspect`].
    Inspect(InspectReply),
    /// Reply to [`Request::ForceRelease`].
    ForceRelease(ForceReleaseReply),
    /// Reply to [`Request::Probe`].
    Probe(Shown),
}

/// The reply to [`Acquire`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum AcquireReply {
    /// The claim is recorded.
    Granted {
        /// Whether the claim already existed.
        freshness: Freshness,
        /// Token that is now stored for the name.
        token: Token,
    },
    /// Another owner holds the name.
    Refused {
        /// Remaining TTL of the claim in the way.
        ttl: Ttl,
        /// Claim version of the claim in the way, if both it and the request have one.
        version: Option<ClaimVersion>,
    },
    /// Others are in front, and the owner has a place in the queue.
    Queued {
        /// Remaining TTL of the claim in the way. Without such a claim, the time that the first waiter has left to
        /// acquire the name.
        ttl: Ttl,
    },
    /// The name is locked in this other mode.
    OtherMode(Mode),
}

/// Whether a granted claim existed before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Freshness {
    /// The name was free.
    Anew,
    /// The claim already belonged to the owner.
    AlreadyYours,
}

/// The remaining time to live of a key on a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ttl {
    /// Remaining milliseconds.
    Millis(u64),
    /// The key has no expiry: another program or an operator has written it.
    Unbounded,
}

/// The reply to one [`Claim`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RenewReply {
    /// The claim belongs to the owner and is extended.
    AlreadyYours {
        /// Token that is now stored for the name.
        token: Token,
    },
    /// The claim does not belong to the owner: it expired, was freed, or another owner holds the name.
    NotYours,
}

/// The reply to [`Release`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ReleaseReply {
    /// The name is free, and waiters were woken.
    Freed {
        /// Number of other clients that listen for this message, as far as the node can tell. They wait for the name,
        /// or waited for it a moment ago.
        told: u32,
    },
    /// The claim remains, at the stated count.
    Kept,
    /// The claim did not belong to the owner: it never did, it expired, or it was released before.
    NotYours,
    /// The claim or the place in the queue has ended, but the name is not free, or already was.
    Left,
}

impl ReleaseReply {
    /// The name is free, and no other client is known to listen for the message.
    pub const FREED: ReleaseReply = ReleaseReply::Freed { told: 0 };
}

/// The reply to [`Inspect`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct InspectReply {
    /// What is stored under the name.
    pub found: Found,
    /// Number of waiters in the queue of the fair lock.
    pub waiting: u64,
    /// Token that is stored for the name, if there is one.
    pub token: Option<Token>,
    /// The label and the address of the owner's client, if the request asked for it, and the client is connected and has a
    /// label.
    pub client: Option<String>,
}

impl InspectReply {
    /// Returns a reply with these contents.
    #[must_use]
    pub fn new(found: Found, waiting: u64, token: Option<Token>) -> Self {
        InspectReply {
            found,
            waiting,
            token,
            client: None,
        }
    }
}

/// What is stored under a name, for people to read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Found {
    /// Nothing is stored: the name is free.
    Nothing,
    /// A claim of a plain or a fair lock.
    Plain {
        /// Owner, as it is written there. A client of another kind may write text that is not an [`OwnerId`].
        owner: String,
        /// Hold count.
        count: u64,
        /// Remaining TTL of the claim.
        ttl: Ttl,
    },
    /// Claims of a read-write lock.
    ReadWrite {
        /// Writer, as it is written there, and its hold count.
        writer: Option<(String, u64)>,
        /// Number of readers whose leases have not run out.
        readers: u64,
        /// Remaining TTL of the whole key.
        ttl: Ttl,
    },
    /// A key that is not a lock.
    NotALock,
}

/// The reply to [`ForceRelease`]. A key that is not a lock is an error, and stays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ForceReleaseReply {
    /// A claim or the first place in the queue was ended, and a waiter was woken.
    Freed,
    /// The name was free, and no waiter was in front.
    WasFree,
}

/// The message that a node publishes about a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Wake {
    /// The name is free: one waiter may try (payload `0`).
    Unlocked,
    /// A writer left: all waiting readers may try (payload `1`).
    ReadersMayEnter,
}
