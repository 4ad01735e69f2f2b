//! Settings that cannot be.

use std::fmt;
use std::time::Duration;

use quorlock_core::lease::LeaseTooShort;
use quorlock_core::message::Mode;
use quorlock_core::name::NameError;
use quorlock_core::slot::UnfitName;

/// Where a lease comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LeaseSource {
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease).
    WatchdogLease,
    /// [`Lock::lease`](crate::Lock::lease), or an extension.
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

/// Settings that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The key prefix cannot be one.
    #[error("key_prefix: {0}")]
    KeyPrefix(NameError),
    /// A setting that must not be zero.
    #[error("{field} is zero: it must be more than that, leave it out for the default")]
    Zero {
        /// Which.
        field: &'static str,
    },
    /// A span that nodes cannot count.
    #[error("{field}, {span:?}, is more than {most:?}")]
    SpanTooLong {
        /// Which.
        field: &'static str,
        /// How long it is.
        span: Duration,
        /// How long it may be: [`LocksBuilder::LONGEST_SPAN`](crate::LocksBuilder::LONGEST_SPAN).
        most: Duration,
    },
    /// A first pause that is longer than the longest.
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
        /// Where the lease comes from.
        of: LeaseSource,
        /// What is wrong with it.
        error: LeaseTooShort,
    },
    /// The lease is longer than the longest lease.
    #[error(
        "{of}, {lease:?}, is longer than longest_lease, {longest:?}; shorten the one or raise the other, for all clients"
    )]
    LeaseTooLong {
        /// Where the lease comes from.
        of: LeaseSource,
        /// The lease.
        lease: Duration,
        /// The longest lease.
        longest: Duration,
    },
    /// Time-outs that leave nothing of the lease.
    #[error("member_timeout, {member_timeout:?}, must be less than {of}, {lease:?}")]
    MemberTimeout {
        /// Where the lease comes from.
        of: LeaseSource,
        /// The member time-out.
        member_timeout: Duration,
        /// The lease.
        lease: Duration,
    },
    /// The longest hold is not even one lease.
    #[error("max_hold, {max_hold:?}, must not be less than {of}, {lease:?}")]
    MaxHold {
        /// Where the lease comes from.
        of: LeaseSource,
        /// The longest hold.
        max_hold: Duration,
        /// The lease.
        lease: Duration,
    },
    /// A token counter that expires before a hold could.
    #[error(
        "token_retention, {retention:?}, must be longer than longest_lease, {longest:?}, and clock_margin, {margin:?}, together"
    )]
    TokenRetention {
        /// How long counters are kept.
        retention: Duration,
        /// The longest lease.
        longest: Duration,
        /// The clock margin.
        margin: Duration,
    },
    /// Clients of one deployment that disagree about the longest lease.
    #[error(
        "longest_lease: {address} was used with another one ({detail}); set the same in all clients, or delete the marker when none of the others runs any more"
    )]
    OtherLongestLease {
        /// The node.
        address: String,
        /// The words of the server.
        detail: String,
    },
    /// A name that a cluster cannot keep.
    #[error("{address}: {error}")]
    UnfitName {
        /// The cluster.
        address: String,
        /// Which name, and what to lock instead.
        error: UnfitName,
    },
    /// A cluster by itself whose votes were to be watched.
    #[error(
        "{address}: one cluster by itself cannot be watched: its marker would lie in another slot than the names. Leave node_trust out \
         (NodeTrust::Unwatched is the default for one address), or lock on a majority of its shards (Locks::majority_of_shards)"
    )]
    WatchedCluster {
        /// The cluster.
        address: String,
    },
    /// A number of shards of which there is no majority worth having.
    #[error("{shards} shards: a majority needs an odd number of them, and three at least")]
    ShardCount {
        /// How many shards there were to be.
        shards: usize,
    },
    /// A majority of shards of what is no cluster.
    #[error(
        "{address} is no address of a cluster, which alone has shards: write redis+cluster://host:port[,host:port..], or give the \
         addresses of independent servers to Locks::quorum"
    )]
    NoCluster {
        /// The address.
        address: String,
    },
    /// More shards than the cluster has primaries.
    #[error(
        "{address} has {primaries} primaries that own slots, and {shards} shards were asked for: each needs one of its own. Ask for fewer, \
         in all clients, or add primaries"
    )]
    TooFewPrimaries {
        /// The cluster.
        address: String,
        /// How many shards were asked for.
        shards: usize,
        /// How many primaries there are.
        primaries: usize,
    },
    /// Two shards of a majority on one primary: they would fail as one.
    #[error(
        "the slots {} and {} both lie on {primary}, so that two members of the majority would fail as one: move one of the two to a primary \
         that has none of the slots {}",
        .together[0], .together[1], slots_of(.slots)
    )]
    SameShard {
        /// The primary that has both.
        primary: String,
        /// The slots of the tags of the two.
        together: [u16; 2],
        /// The slots of all tags.
        slots: Vec<u16>,
    },
    /// A cluster in a majority whose votes were to count unwatched, or after restarts.
    #[error(
        "{address}: with NodeTrust::{trust} a replica that takes the place of a primary would vote without knowing its claims, and so would a \
         primary that a slot is moved to: leave node_trust out (NodeTrust::Watched is the default for a majority)"
    )]
    ClusterTrust {
        /// The cluster.
        address: String,
        /// What was set.
        trust: String,
    },
    /// No nodes.
    #[error("no nodes were given: a lock needs at least one")]
    NoNodes,
    /// No names.
    #[error("no names were given: name at least one lock")]
    NoNames,
    /// A fair lock over several nodes: each would have a queue of its own, in another order than the rest.
    #[error(
        "{name}: a fair lock needs one node, several queues have no common order: use a client of one node, or a plain lock"
    )]
    FairQuorum {
        /// What was to be locked.
        name: String,
    },
    /// One name twice in one lock, in two modes: it would wait for itself.
    #[error("{name}: it is in the lock as a {} and as a {}: name it once", .modes[0], .modes[1])]
    TwoModes {
        /// Which name.
        name: String,
        /// In which modes.
        modes: [Mode; 2],
    },
    /// One server twice in one quorum: its vote would count twice.
    #[error("{address} was given twice: its vote would count twice")]
    SameNode {
        /// Which.
        address: String,
    },
    /// One server under two addresses in one quorum: its vote would count twice.
    #[error(
        "{address} and {other} are the same server (one run_id): its vote would count twice, give one address of it"
    )]
    SameServer {
        /// One address.
        address: String,
        /// The other.
        other: String,
    },
    /// More names than a lock can have.
    #[error("{names} names are too many for one lock: at most {most} are allowed")]
    TooManyNames {
        /// How many there would be.
        names: usize,
        /// How many there can be: [`Lock::MOST_NAMES`](crate::Lock::MOST_NAMES).
        most: usize,
    },
    /// More members than a lock can have.
    #[error("{members} members (names x nodes) are too many: at most {most} are allowed")]
    TooManyMembers {
        /// How many there would be.
        members: usize,
        /// How many there can be.
        most: usize,
    },
}
