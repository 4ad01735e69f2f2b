//! What goes wrong with a node.

use super::{Handover, ServerError};
use crate::plan::time::{ClockStep, SimTime};

/// What goes wrong with a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeFault {
    /// The node stands still. Requests queue up, and are executed when it goes on; its clock runs on.
    Pause,
    /// The node ends, and comes back with what its persistence kept when the fault ends.
    Crash,
    /// The node loses power, and what it wrote last before that: it comes back without it when the fault ends, whatever its
    /// persistence. An `appendfsync everysec` on a slow disk loses up to two seconds, and the end of a file that was cut
    /// short is left out (`aof-load-truncated`).
    PowerLoss {
        /// For how long before it nothing that was written is kept.
        loses: SimTime,
    },
    /// `FLUSHALL`.
    Flush,
    /// The node evicts what it has under one name.
    Evict {
        /// Which name, from 0.
        name: u16,
    },
    /// The node answers every request with an error, without executing it.
    Error {
        /// The error.
        error: ServerError,
    },
    /// The node forgets its scripts (`SCRIPT FLUSH`): the next call of each client takes one more round trip.
    ForgetScripts,
    /// The wall clock of a node runs at another rate from now on.
    Rate {
        /// How much faster than true time.
        rate_ppm: i32,
    },
    /// The wall clock of a node is set.
    Step {
        /// By how much.
        by: ClockStep,
    },
    /// What the node sends to its replicas takes longer.
    SlowReplication {
        /// By how much.
        by: SimTime,
        /// To which of its replicas, from 0; without, to all.
        replica: Option<u16>,
    },
    /// A replica takes the node's place. Clients that are left behind go on with the old primary, which rejoins when
    /// the fault ends and loses its writes.
    Failover {
        /// Which of its replicas is promoted, from 0. If that is the primary by now, the first primary of the node has its place.
        replica: u16,
        /// Clients that do not notice.
        left_behind: Vec<u16>,
    },
    /// The primary of a group is cut off from its replicas, its sentinels and all clients, but for those that are cut off
    /// with it.
    IsolatePrimary {
        /// Clients on the side of the primary.
        clients: Vec<u16>,
        /// Sentinels on the side of the primary.
        sentinels: Vec<u16>,
    },
    /// A sentinel is told to promote a replica though nothing is wrong (`SENTINEL FAILOVER`).
    SentinelFailover,
    /// A sentinel of a group ends, and is started again.
    CrashSentinel {
        /// Which one.
        sentinel: u16,
    },
    /// A sentinel of a group stands still: its connections stay, and it answers nothing.
    PauseSentinel {
        /// Which one.
        sentinel: u16,
    },
    /// A sentinel of a group hears nothing of servers and other sentinels, and goes on naming the primary that it knows.
    /// Clients reach it.
    StaleSentinel {
        /// Which one.
        sentinel: u16,
    },
    /// The node stands still behind the n-th request from now on, which it has executed (`DEBUG SLEEP`, a fork, a slow command
    /// of others): the answer leaves when it goes on.
    Stall {
        /// Behind which request, from 1.
        nth: u32,
    },
    /// The replication backlog of the node is freed, an hour after its last replica left: the node draws its
    /// `master_replid` anew, as if it had been restarted, and loses nothing. A node with a replica keeps its backlog.
    FreeBacklog,
    /// The address of the node leads some clients to another server for a while. Two of these exchange two addresses.
    Misroute {
        /// Clients that are led there.
        clients: Vec<u16>,
        /// The node whose server answers them.
        to: u16,
    },
    /// The slot of a name is moved to another shard of the cluster, key by key, while clients go on.
    MigrateSlot {
        /// Which name, from 0.
        name: u16,
        /// The shard that gets it.
        to: u16,
        /// For how long at the end, when all keys are there, the old owner names the new one, and the new one still the old one: each
        /// sends clients to the other.
        gap: SimTime,
    },
    /// A replica of a shard is told to take the place of its primary (`CLUSTER FAILOVER`).
    ClusterFailover {
        /// In which way.
        how: Handover,
    },
}
