//! Invalid settings.

use std::fmt;
use std::time::Duration;

use quorlock_core::lease::LeaseTooShort;
use quorlock_core::message::Mode;
use quorlock_core::name::NameError;
use quorlock_core::slot::UnfitName;

use crate::error::Quarantine;

/// The setting that a lease comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LeaseSource {
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease).
    WatchdogLease,
    /// [`Lock::lease`](crate::Lock::lease), [`Lock::watchdog_lease`](crate::Lock::watchdog_lease), or an extension.
    Lock,
}

impl fmt::Display for LeaseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LeaseSource::WatchdogLease => "watchdog_lease",
            LeaseSource::Lock => "the lease of the lock",
        })
    }
}

fn slots_of(slots: &[u16]) -> String {
    let slots: Vec<_> = slots.iter().map(u16::to_string).collect();
    slots.join(", ")
}

/// An invalid setting, or settings that do not fit together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name is too long for a semaphore, whose permits have longer names.
    #[error(
        "{name}: the name of a semaphore has {bytes} bytes, and with the key prefix at most {most} are allowed: name a hash of it instead"
    )]
    SemaphoreName {
        /// The name that was given.
        name: String,
        /// The length of the name, in bytes.
        bytes: usize,
        /// The longest name, in bytes: less for a client with a key prefix.
        most: usize,
    },
    /// A semaphore has no permits, or too many.
    #[error("{name}: a semaphore has 1 to {most} permits, and {permits} were asked for")]
    Permits {
        /// The name of the semaphore.
        name: String,
        /// The number of permits that was given.
        permits: usize,
        /// The limit: [`Semaphore::MOST_PERMITS`](crate::Semaphore::MOST_PERMITS).
        most: usize,
    },
    /// The key prefix is invalid.
    #[error("key_prefix: {0}")]
    KeyPrefix(NameError),
    /// The namespace is too long or contains a NUL.
    #[error("namespace: {0}")]
    Namespace(NameError),
    /// The namespace has a brace.
    #[error(
        "namespace: braces choose the slot of a name in a cluster, so a namespace has none: leave them out"
    )]
    NamespaceBraces,
    /// The label is not valid.
    #[error("label: use 1 to 100 printable ASCII characters without spaces")]
    Label,
    /// A setting that must not be zero is zero.
    #[error("{field} is zero: set more than zero, or leave it out for the default")]
    Zero {
        /// The name of the setting.
        field: &'static str,
    },
    /// A time span is longer than nodes can store.
    #[error("{field}, {span:?}, is more than {most:?}")]
    SpanTooLong {
        /// The name of the setting.
        field: &'static str,
        /// The length of the span.
        span: Duration,
        /// The limit: [`LocksBuilder::LONGEST_SPAN`](crate::LocksBuilder::LONGEST_SPAN).
        most: Duration,
    },
    /// The first pause between rounds is longer than the longest.
    #[error("retry.backoff, {backoff:?}, must not be more than retry.backoff_cap, {cap:?}")]
    Backoff {
        /// The bound on the first pause.
        backoff: Duration,
        /// The bound on every pause.
        cap: Duration,
    },
    /// The lease is too short.
    #[error("{of}: {error}")]
    LeaseTooShort {
        /// The setting that the lease comes from.
        of: LeaseSource,
        /// What is wrong with the lease.
        error: LeaseTooShort,
    },
    /// The lease is longer than the longest lease.
    #[error(
        "{of}, {lease:?}, is longer than longest_lease, {longest:?}; shorten the one or raise the other"
    )]
    LeaseTooLong {
        /// The setting that the lease comes from.
        of: LeaseSource,
        /// The lease that was requested.
        lease: Duration,
        /// The longest lease that is allowed.
        longest: Duration,
    },
    /// The member time-out leaves nothing of the lease.
    #[error("member_timeout, {member_timeout:?}, must be less than {of}, {lease:?}")]
    MemberTimeout {
        /// The setting that the lease comes from.
        of: LeaseSource,
        /// The member time-out that was set.
        member_timeout: Duration,
        /// The lease that was requested.
        lease: Duration,
    },
    /// The longest hold is shorter than one lease.
    #[error("max_hold, {max_hold:?}, must not be less than {of}, {lease:?}")]
    MaxHold {
        /// The setting that the lease comes from.
        of: LeaseSource,
        /// The longest hold that was set.
        max_hold: Duration,
        /// The lease that was requested.
        lease: Duration,
    },
    /// A lock must stay locked for longer than its lease, and so for longer than a dead holder could keep it.
    #[error(
        "at_least, {least:?}, is longer than the lease, {lease:?}: if the holder died, the lock would be free earlier; ask for a longer lease"
    )]
    AtLeast {
        /// How long the lock must stay locked.
        least: Duration,
        /// The lease that was requested.
        lease: Duration,
    },
    /// A token counter could expire before a hold does.
    #[error(
        "token_retention, {retention:?}, must be longer than longest_lease, {longest:?}, and clock_margin, {margin:?}, together"
    )]
    TokenRetention {
        /// How long counters are kept.
        retention: Duration,
        /// The longest lease that was set.
        longest: Duration,
        /// The clock margin that was set, or its default.
        margin: Duration,
    },
    /// A hold cannot be extended for this long yet, because the longest lease of the deployment is being raised.
    #[error("the lease, {lease:?}, is longer than {address} grants at present: {quarantine}")]
    LeaseNotGranted {
        /// The lease that was requested.
        lease: Duration,
        /// The address of the node.
        address: String,
        /// Why, and for how long, if that is known.
        quarantine: Quarantine,
    },
    /// The name cannot be locked on a cluster.
    #[error("{address}: {error}")]
    UnfitName {
        /// The address of the cluster.
        address: String,
        /// The name, and what to lock instead.
        error: UnfitName,
    },
    /// `NodeTrust::Watched` was set for a single cluster, which cannot be watched.
    #[error(
        "{address}: one cluster by itself cannot be watched: its marker would lie in another slot than the names. Leave node_trust out \
         (NodeTrust::Unwatched is the default for one address), or lock on a majority of its shards (Locks::majority_of_shards)"
    )]
    WatchedCluster {
        /// The address of the cluster.
        address: String,
    },
    /// The number of shards is even, or less than three.
    #[error("{shards} shards: a majority needs an odd number of them, and three at least")]
    ShardCount {
        /// The number of shards that was requested.
        shards: usize,
    },
    /// A majority of shards was requested, but the address is not that of a cluster.
    #[error(
        "{address} is not the address of a cluster, and only clusters have shards: write redis+cluster://host:port[,host:port..], or give the \
         addresses of independent servers to Locks::quorum"
    )]
    NoCluster {
        /// The address that was given.
        address: String,
    },
    /// More shards were requested than the cluster has primaries.
    #[error(
        "{address} has {primaries} primaries that own slots, and {shards} shards were asked for: each needs one of its own. Ask for fewer, \
         in all clients, or add primaries"
    )]
    TooFewPrimaries {
        /// The address of the cluster.
        address: String,
        /// The number of shards that was requested.
        shards: usize,
        /// The number of primaries that own slots.
        primaries: usize,
    },
    /// Two shards of a majority are on one primary, and would fail together.
    #[error(
        "the slots {} and {} both lie on {primary}, so that two members of the majority would fail as one: move one of the two to a primary \
         that has none of the slots {}",
        .together[0], .together[1], slots_of(.slots)
    )]
    SameShard {
        /// The primary that has both shards.
        primary: String,
        /// The slots of the two shards.
        together: [u16; 2],
        /// The slots of all shards.
        slots: Vec<u16>,
    },
    /// A cluster in a majority must be watched, but another trust policy was set.
    #[error(
        "{address}: with NodeTrust::{trust} a replica that takes the place of a primary would vote without knowing its claims, and so would a \
         primary that a slot is moved to: leave node_trust out (NodeTrust::Watched is the default for a majority)"
    )]
    ClusterTrust {
        /// The address of the cluster.
        address: String,
        /// The trust policy that was set.
        trust: String,
    },
    /// No nodes were given.
    #[error("no nodes were given: a lock needs at least one")]
    NoNodes,
    /// No names were given.
    #[error("no names were given: name at least one lock")]
    NoNames,
    /// A fair lock needs one node: on several nodes each would have its own queue, in its own order.
    #[error(
        "{name}: a fair lock needs one node, several queues have no common order: use a client of one node, or a plain lock"
    )]
    FairQuorum {
        /// The name that was requested.
        name: String,
    },
    /// One name occurs in a lock in two modes, which would exclude each other.
    #[error("{name}: it is in the lock as a {} and as a {}: name it once", .modes[0], .modes[1])]
    TwoModes {
        /// The name that occurs twice.
        name: String,
        /// The two modes.
        modes: [Mode; 2],
    },
    /// One address was given twice: its vote would count twice.
    #[error("{address} was given twice: its vote would count twice")]
    SameNode {
        /// The address that was given twice.
        address: String,
    },
    /// Two addresses lead to one server or store: its vote would count twice.
    #[error(
        "{address} and {other} are the same server or store (one run_id, one process): its vote would count twice, give one address of it"
    )]
    SameServer {
        /// One of the addresses.
        address: String,
        /// The other address.
        other: String,
    },
    /// The lock has too many names.
    #[error("{names} names are too many for one lock: at most {most} are allowed")]
    TooManyNames {
        /// The number of names that were given.
        names: usize,
        /// The limit: [`Lock::MOST_NAMES`](crate::Lock::MOST_NAMES).
        most: usize,
    },
    /// The lock has too many members.
    #[error("{members} members (names x nodes) are too many: at most {most} are allowed")]
    TooManyMembers {
        /// The number of members that the lock would have.
        members: usize,
        /// The limit.
        most: usize,
    },
}
