//! A key on a node which shows that its process was watched for long enough.
//!
//! A node that restarted without its data, was flushed, or took over from another node has forgotten claims that their
//! holders rely on. Its uptime is not evidence: a promoted replica, a flush and a step of its clock can each make it
//! misleading. Therefore clients keep a marker on every node: a key that names the process on which it was written. If
//! the marker is missing or names another process, claims may be missing too.

mod figures;
mod marked;

pub use self::figures::{Figures, NoFigures};
pub(crate) use self::marked::Marked;
use crate::time::WallMillis;

/// How long a node keeps a marker that no client checks, in milliseconds: seven days. An acquire that finds less than
/// half of this time left restarts it.
pub const KEPT_MILLIS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The process that a node is: a number of 52 bits that the node draws when it starts, and again whenever it may lack
/// writes that it has acknowledged at this address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Process(pub u64);

/// A random number below 2^53 that distinguishes one watch of a process from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonce(u64);

impl Nonce {
    /// Returns a nonce made of any 64 random bits.
    #[must_use]
    pub const fn from_random(bits: u64) -> Self {
        Nonce(bits >> 11)
    }

    /// Returns the nonce with a number that was received over the wire.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Nonce(number)
    }

    /// Returns the number, as it is sent on the wire.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The part of a request that checks or changes the marker of the node that executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Check {
    /// The figures that the act writes.
    pub figures: Figures,
    /// What the node does with its marker.
    pub act: Act,
    /// The marker that the client trusts. If the node has it, and it is of the node's process, the node changes nothing
    /// (except [`Act::Restate`]), and its short reply repeats what the client knows.
    pub trusted: Option<ConfirmedMarker>,
    /// Which data a node has after a restart.
    pub restarts: Restarts,
    /// The nonce of the watch that the client trusted last, even if it trusts none now. With
    /// [`Restarts::KeepEverything`] a node does not inherit a marker with a different nonce.
    pub known: Option<Nonce>,
}

/// The operator's statement about the data of a restarted node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Restarts {
    /// The node may have forgotten claims.
    MayForget,
    /// The node has every write that it acknowledged, and no other server ever takes over its address. A process that
    /// is asked to mark itself ([`Act::Mark`], [`Act::MarkFresh`]) and finds the confirmed marker of the previous
    /// process adopts it, unless there is evidence against the statement. The node must have no replica and must
    /// never have been one ([`Lineage::Own`]), and the marker must have the nonce of [`Check::known`] if the check
    /// names one.
    KeepEverything,
}

/// The origin of a node's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Lineage {
    /// All data was written to this node: it has no replicas, and has never been a replica as far as it knows.
    #[default]
    Own,
    /// The node has replicas, or took over from a primary (its `master_replid2` is not zero).
    Shared,
}

/// A confirmed marker, as a client trusts it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConfirmedMarker {
    /// The process that was watched.
    pub process: Process,
    /// The nonce of the watch.
    pub nonce: Nonce,
    /// What the marker states about leases.
    pub figures: Figures,
}

/// What a request does with the marker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Read the marker only.
    Look,
    /// Write an observing marker if this process has none.
    Mark(Nonce),
    /// Like [`Act::Mark`], but replace a marker that was watched for less than the figures of the check need.
    MarkAnew(Nonce),
    /// Like [`Act::Mark`], but write a confirmed marker if the node has none from any process.
    MarkFresh(Nonce),
    /// Confirm the observing marker if it names this process, has this nonce, and states no longer watch than the check.
    Confirm(Nonce),
    /// Write the figures of the check into the marker [`Check::trusted`], if the node has it.
    Restate,
}

impl Act {
    /// Returns whether the act writes a marker where there is none.
    #[must_use]
    pub const fn marks(self) -> bool {
        matches!(self, Act::Mark(_) | Act::MarkAnew(_) | Act::MarkFresh(_))
    }
}

/// Whether a process was watched for long enough.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MarkerState {
    /// The process is still being watched; its votes do not count.
    Observing,
    /// The process was watched for long enough; its votes count.
    Confirmed,
}

/// The process and the marker that a node shows in a reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shown {
    /// The process that the node is.
    pub process: Process,
    /// The state of its marker after the request.
    pub marker: ShownMarker,
}

/// The marker of a node, as seen by the process that the node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ShownMarker {
    /// There is no marker: the node is new, has forgotten everything, or was not used for days.
    Missing,
    /// The marker names another process: the node was restarted, or took over from another.
    Anothers,
    /// The marker names this process.
    Own(Nonce, MarkerState, Figures),
}

/// A marker as it is stored on a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Marker {
    /// The process on which it was written.
    pub process: Process,
    /// The nonce of the watch that began with it.
    pub nonce: Nonce,
    /// What it states about leases and watches.
    pub figures: Figures,
    /// Whether the process was watched for long enough.
    pub state: MarkerState,
    /// When the marker expires, by the node's clock.
    pub expires: WallMillis,
}

#[cfg(test)]
mod tests;
