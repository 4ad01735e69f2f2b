//! Faults of a node.

use super::{Handover, ServerError};
use crate::time::{ClockStep, SimTime};

/// A fault of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeFault {
    /// The node is paused. Requests queue up and are executed when it resumes; its clock continues.
    Pause,
    /// The node crashes. When the fault ends, it is restarted with the data that its persistence kept.
    Crash,
    /// The node loses power and its last writes, whatever its persistence is. It is restarted without these writes when
    /// the fault ends. With `appendfsync everysec` on a slow disk, up to two seconds are lost; a truncated end of the
    /// file is ignored (`aof-load-truncated`).
    PowerLoss {
        /// The length of the period before the power loss whose writes are lost.
        loses: SimTime,
    },
    /// The node loses all its keys (`FLUSHALL`).
    Flush,
    /// The node evicts the keys of one name.
    Evict {
        /// The name, from 0.
        name: u16,
    },
    /// The clients' user loses the right to the keys of one name (`ACL SETUSER`), and gets it back when the fault ends. The
    /// node refuses every request that has one of these keys, whatever other keys it has.
    RevokeKeys {
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
        /// The size of the step, forwards or backwards.
        by: ClockStep,
    },
    /// Writes take longer to reach the node's replicas.
    SlowReplication {
        /// The additional time until a write reaches a replica.
        by: SimTime,
        /// The replica that is affected, from 0; `None` for all.
        replica: Option<u16>,
    },
    /// A replica replaces the primary of the node. Clients that are left behind keep using the old primary. When the
    /// fault ends, the old primary rejoins as a replica and loses its writes.
    Failover {
        /// The replica that is promoted, from 0. If it is already the primary, the node's first primary is promoted
        /// instead.
        replica: u16,
        /// The clients that do not notice the failover, and keep using the old primary.
        left_behind: Vec<u16>,
    },
    /// The primary of a group is cut off from its replicas, its sentinels and all clients, except those that are
    /// listed here.
    IsolatePrimary {
        /// The clients that can still reach the primary.
        clients: Vec<u16>,
        /// The sentinels that can still reach the primary.
        sentinels: Vec<u16>,
    },
    /// A sentinel receives the command to promote a replica although nothing is wrong (`SENTINEL FAILOVER`).
    SentinelFailover,
    /// A sentinel of a group crashes. It is restarted when the fault ends.
    CrashSentinel {
        /// The index of the sentinel, from 0.
        sentinel: u16,
    },
    /// A sentinel of a group is paused. Its connections stay open, and it answers nothing.
    PauseSentinel {
        /// The index of the sentinel, from 0.
        sentinel: u16,
    },
    /// A sentinel of a group receives nothing from servers and other sentinels, and keeps naming the primary that it
    /// knows. Clients can reach it.
    StaleSentinel {
        /// The index of the sentinel, from 0.
        sentinel: u16,
    },
    /// The node is paused after it has executed the n-th request from now on (`DEBUG SLEEP`, a fork, or a slow command
    /// of another client). The answer leaves when the pause ends.
    Stall {
        /// The number of the request, from 1.
        nth: u32,
    },
    /// The replication backlog of the node is freed, as Redis does an hour after the last replica has left: the node
    /// draws a new `master_replid`, as after a restart, but loses nothing. A node with a replica keeps its backlog.
    FreeBacklog,
    /// The address of the node leads some clients to another server for a while. With two such faults, two nodes
    /// exchange their addresses.
    Misroute {
        /// The clients that are misrouted.
        clients: Vec<u16>,
        /// The node whose server answers these clients.
        to: u16,
    },
    /// The slot of a name is moved to another shard of the cluster, key by key, while clients work.
    MigrateSlot {
        /// The name, from 0.
        name: u16,
        /// The shard that receives the slot.
        to: u16,
        /// How long the two owners redirect clients to each other at the end of the move, when all keys have been
        /// moved. The old owner already names the new one, and the new one still names the old one.
        gap: SimTime,
    },
    /// A replica of a shard receives the command to replace its primary (`CLUSTER FAILOVER`).
    ClusterFailover {
        /// How the replica is promoted.
        how: Handover,
    },
}
