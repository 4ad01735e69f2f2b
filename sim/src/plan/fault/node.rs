//! What goes wrong with a node.

use super::{Handover, ServerError};
use crate::plan::time::{ClockStep, SimTime};

/// What goes wrong with a node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeFault {
    /// The node is paused. Requests queue up and are executed when it resumes; its clock continues.
    Pause,
    /// The node crashes, and is started again with what its persistence kept when the fault ends.
    Crash,
    /// The node loses power, and with it what it wrote last: it is started again without that when the fault ends,
    /// whatever its persistence. With `appendfsync everysec` on a slow disk, up to two seconds are lost; the end of a
    /// file that was cut short is left out (`aof-load-truncated`).
    PowerLoss {
        /// The time before the power loss whose writes are lost.
        loses: SimTime,
    },
    /// The node loses all its keys (`FLUSHALL`).
    Flush,
    /// The node evicts the keys of one name.
    Evict {
        /// The name, from 0.
        name: u16,
    },
    /// The node answers every request with an error, without executing it.
    Error {
        /// The error.
        error: ServerError,
    },
    /// The node loses its cached scripts (`SCRIPT FLUSH`): the next call of each client takes one more round trip.
    ForgetScripts,
    /// The wall clock of a node runs at another rate from now on.
    Rate {
        /// How much faster than true time it runs, in parts per million.
        rate_ppm: i32,
    },
    /// The wall clock of a node is set.
    Step {
        /// The size of the step.
        by: ClockStep,
    },
    /// Writes take longer to reach the node's replicas.
    SlowReplication {
        /// How much longer they take.
        by: SimTime,
        /// The replica that is affected, from 0; `None` for all.
        replica: Option<u16>,
    },
    /// A replica replaces the primary of the node. Clients that are left behind keep using the old primary, which
    /// rejoins when the fault ends and then loses its writes.
    Failover {
        /// The replica that is promoted, from 0. If it is already the primary, the node's first primary is promoted
        /// instead.
        replica: u16,
        /// Clients that do not notice.
        left_behind: Vec<u16>,
    },
    /// The primary of a group is cut off from its replicas, its sentinels and all clients, except those on its side.
    IsolatePrimary {
        /// Clients on the side of the primary.
        clients: Vec<u16>,
        /// Sentinels on the side of the primary.
        sentinels: Vec<u16>,
    },
    /// A sentinel is told to promote a replica although nothing is wrong (`SENTINEL FAILOVER`).
    SentinelFailover,
    /// A sentinel of a group crashes, and is started again when the fault ends.
    CrashSentinel {
        /// The sentinel.
        sentinel: u16,
    },
    /// A sentinel of a group is paused: its connections stay open, and it answers nothing.
    PauseSentinel {
        /// The sentinel.
        sentinel: u16,
    },
    /// A sentinel of a group receives nothing from servers and other sentinels, and keeps naming the primary that it
    /// knows. Clients reach it.
    StaleSentinel {
        /// The sentinel.
        sentinel: u16,
    },
    /// The node is paused after it has executed the n-th request from now on (`DEBUG SLEEP`, a fork, a slow command
    /// of another client). The answer leaves when the pause ends.
    Stall {
        /// The number of the request, from 1.
        nth: u32,
    },
    /// The replication backlog of the node is freed, as Redis does an hour after the last replica has left: the node
    /// draws a new `master_replid`, as after a restart, but loses nothing. A node with a replica keeps its backlog.
    FreeBacklog,
    /// The address of the node leads some clients to another server for a while. Two such faults exchange two
    /// addresses.
    Misroute {
        /// Clients that are misrouted.
        clients: Vec<u16>,
        /// The node whose server answers them.
        to: u16,
    },
    /// The slot of a name is moved to another shard of the cluster, key by key, while clients work.
    MigrateSlot {
        /// The name, from 0.
        name: u16,
        /// The shard that receives the slot.
        to: u16,
        /// How long at the end, when all keys are there, the two owners redirect clients to each other: the old owner
        /// already names the new one, and the new one still the old one.
        gap: SimTime,
    },
    /// A replica of a shard is told to take the place of its primary (`CLUSTER FAILOVER`).
    ClusterFailover {
        /// How the replica is promoted.
        how: Handover,
    },
}
