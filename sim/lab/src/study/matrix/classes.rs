//! The table of classes.

use super::class::{Assumes, Class, ClassBounds, Clients};
use quorlock_sim_plan::Persistence;
use quorlock_sim_plan::fault::Kind;

const QUIET: Class = Class {
    id: "quiet",
    title: "there are no faults",
    kinds: &[],
    bounds: ClassBounds::Inside,
    persistence: Persistence::EveryWrite,
    assumes: Assumes::Nothing,
    clients: Clients::Busy,
};

/// The classes that only storms have: for runs on real servers, and for the same storms in the simulator.
#[cfg(unix)]
pub(crate) const STORMS_ONLY: &[Class] = &[
    BACKUPS,
    REPLICAS,
    QUIET_RESTARTS,
    REVOKED_KEYS,
    ELECTIONS,
    CLUSTER_FAILOVERS,
    HALF_MOVED_SLOTS,
    ALL_AT_ONCE,
];

/// Servers that look like another process although they lose nothing, between restarts after which they have lost
/// everything.
#[cfg(unix)]
const BACKUPS: Class = Class {
    id: "backups, amnesia",
    title: "nodes are backed up by replication and free their backlogs, and some restart without their data",
    kinds: &[Kind::Backup, Kind::FreeBacklog, Kind::CrashNode],
    persistence: Persistence::Memory,
    assumes: Assumes::Trust,
    ..QUIET
};

/// Faults of replicas that never take the place of their primaries.
#[cfg(unix)]
const REPLICAS: Class = Class {
    id: "replicas",
    title: "replicas restart, pause, and receive writes late; their primaries keep running",
    kinds: &[Kind::CrashNode, Kind::PauseNode, Kind::SlowReplication],
    ..QUIET
};

/// A class for storms on real servers: all kinds of faults that real servers support, within what the product's lock
/// on a majority survives. A third of them are restarts, so that a minute has enough of them to break a lock that does
/// not survive restarts.
#[cfg(unix)]
const ALL_AT_ONCE: Class = Class {
    id: "all at once, amnesia",
    title: "all kinds of faults at once, within what the lock of this crate on a majority withstands; nodes restart without their data",
    kinds: &[
        Kind::Cut,
        Kind::Swallow,
        Kind::Delay,
        Kind::HoldBack,
        Kind::Reset,
        Kind::PauseClient,
        Kind::CrashClient,
        Kind::Cancel,
        Kind::NodeRate,
        Kind::PauseNode,
        Kind::StallNode,
        Kind::ServerError,
        Kind::ForgetScripts,
        Kind::NodeStep,
        Kind::CrashNode,
        Kind::CrashNode,
        Kind::CrashNode,
        Kind::CrashNode,
        Kind::CrashNode,
        Kind::CrashNode,
    ],
    persistence: Persistence::Memory,
    assumes: Assumes::Remedies,
    ..QUIET
};

/// What makes the sentinels of real groups elect another primary.
#[cfg(unix)]
const ELECTIONS: Class = Class {
    id: "elections",
    title: "primaries of Sentinel groups are killed, stopped, or replaced on demand; sentinels are killed and stopped",
    kinds: &[
        Kind::CrashNode,
        Kind::CrashNode,
        Kind::PauseNode,
        Kind::SentinelFailover,
        Kind::SentinelFailover,
        Kind::CrashSentinel,
        Kind::PauseSentinel,
    ],
    assumes: Assumes::Trust,
    ..QUIET
};

/// What makes the nodes of a real cluster elect another primary, and moves of the slots of names that are held and
/// waited for.
#[cfg(unix)]
const CLUSTER_FAILOVERS: Class = Class {
    id: "cluster failovers",
    title: "primaries of shards are killed, stopped, or replaced by order; slots of names are moved to another shard and back",
    kinds: &[
        Kind::ClusterFailover,
        Kind::CrashNode,
        Kind::MigrateSlot,
        Kind::ClusterFailover,
        Kind::PauseNode,
    ],
    assumes: Assumes::Trust,
    ..QUIET
};

/// Restarts between two uses of a lock. Clients watch nodes without using them, so a node that restarted long ago counts.
#[cfg(unix)]
const QUIET_RESTARTS: Class = Class {
    id: "quiet restarts",
    title: "nodes restart without their data, one after another, while hardly any client uses a lock",
    kinds: &[Kind::CrashNode],
    persistence: Persistence::Memory,
    assumes: Assumes::Trust,
    clients: Clients::Idle,
    ..QUIET
};

/// Refusals of calls because of one of their names. Holds on the other names of the client must last.
#[cfg(unix)]
const REVOKED_KEYS: Class = Class {
    id: "revoked keys",
    title: "the clients' user loses the right to the keys of a name while it is held, and gets it back",
    kinds: &[Kind::RevokeKeys],
    ..QUIET
};

/// Moves of slots that pause for longer than a lease, when some of the names in the slot have moved.
#[cfg(unix)]
const HALF_MOVED_SLOTS: Class = Class {
    id: "half-moved slots",
    title: "slots of names are moved to another shard and back; each move pauses for longer than a lease with some of the names moved",
    kinds: &[Kind::MigrateSlot],
    ..QUIET
};

/// The kinds that the class of everything leaves out. A new kind belongs to that class unless it is listed here.
const LEFT_OUT: [Kind; 13] = [
    Kind::Flush,
    Kind::SlowReplication,
    Kind::Failover,
    Kind::IsolatePrimary,
    Kind::SentinelFailover,
    Kind::CrashSentinel,
    Kind::PauseSentinel,
    Kind::StaleSentinel,
    Kind::PowerLoss,
    Kind::Misroute,
    Kind::MigrateSlot,
    Kind::ClusterFailover,
    Kind::RevokeKeys,
];

const EVERYTHING: Class = Class {
    id: "everything",
    title: "all kinds of faults at once, except flush and failover; nodes restart with all their data",
    kinds: &Kind::all_but::<{ Kind::ALL.len() - LEFT_OUT.len() }>(&LEFT_OUT),
    bounds: ClassBounds::Beyond,
    persistence: Persistence::EveryWrite,
    assumes: Assumes::Counters,
    clients: Clients::Busy,
};

/// All classes.
pub const CLASSES: &[Class] = &[
    QUIET,
    Class {
        id: "partitions",
        title: "links are cut in one direction or both, or lose messages; connections discard everything until they are replaced",
        kinds: &[Kind::Cut, Kind::Loss, Kind::Swallow],
        ..QUIET
    },
    Class {
        id: "delays",
        title: "messages arrive late, twice, out of order, or all at once; connections are reset",
        kinds: &[
            Kind::Delay,
            Kind::HoldBack,
            Kind::Duplicate,
            Kind::Reorder,
            Kind::Reset,
        ],
        ..QUIET
    },
    Class {
        id: "client pauses",
        title: "clients pause for up to two leases, also in the middle of an operation",
        kinds: &[Kind::PauseClient, Kind::PauseInside],
        ..QUIET
    },
    Class {
        id: "client stops",
        title: "clients are stopped in the middle of a step for up to two leases, while everything else keeps running",
        kinds: &[Kind::StopInside],
        ..QUIET
    },
    Class {
        id: "client crashes",
        title: "clients crash and restart; operations are cancelled",
        kinds: &[Kind::CrashClient, Kind::Cancel],
        ..QUIET
    },
    Class {
        id: "suspend",
        title: "machines of clients are suspended; their monotonic clocks include that time",
        kinds: &[Kind::SuspendClient],
        ..QUIET
    },
    Class {
        id: "suspend, clock stops",
        title: "machines of clients are suspended; their monotonic clocks stop for that time",
        kinds: &[Kind::SuspendClient],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::Counters,
        ..QUIET
    },
    Class {
        id: "drift",
        title: "clocks of clients and nodes run up to 0.49 % fast or slow",
        kinds: &[Kind::ClientRate, Kind::NodeRate],
        ..QUIET
    },
    Class {
        id: "drift beyond 1 %",
        title: "clocks of clients and nodes run up to 20 % fast or slow",
        kinds: &[Kind::ClientRate, Kind::NodeRate],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::Counters,
        ..QUIET
    },
    Class {
        id: "node pauses",
        title: "nodes pause, also after receiving a request, refuse every request with an error, or forget their scripts",
        kinds: &[
            Kind::PauseNode,
            Kind::StallNode,
            Kind::ServerError,
            Kind::ForgetScripts,
        ],
        ..QUIET
    },
    Class {
        id: "restarts",
        title: "nodes restart with all their data",
        kinds: &[Kind::CrashNode],
        ..QUIET
    },
    Class {
        id: "restarts, amnesia",
        title: "nodes of a minority (or the only node) restart without their data, at once or later",
        kinds: &[Kind::CrashNode],
        persistence: Persistence::Memory,
        assumes: Assumes::Trust,
        ..QUIET
    },
    Class {
        id: "power loss",
        title: "nodes of a minority (or the only node) lose power, and with it their last writes",
        kinds: &[Kind::PowerLoss],
        assumes: Assumes::Trust,
        ..QUIET
    },
    Class {
        id: "steps",
        title: "wall clocks of nodes are set back by up to a lease, or forward by less than the margin (a lease) in total",
        kinds: &[Kind::NodeStep],
        assumes: Assumes::Margin,
        ..QUIET
    },
    Class {
        id: "steps beyond the margin",
        title: "wall clocks of nodes are set back or forward by up to four leases",
        kinds: &[Kind::NodeStep],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::Counters,
        ..QUIET
    },
    Class {
        id: "eviction",
        title: "nodes evict claims",
        kinds: &[Kind::Evict],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::Counters,
        ..QUIET
    },
    Class {
        id: "flush",
        title: "any of the nodes are flushed",
        kinds: &[Kind::Flush],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::TooMuch,
        ..QUIET
    },
    Class {
        id: "failover",
        title: "a replica replaces its node, without the last writes; clients may stay with the old primary",
        kinds: &[Kind::Failover, Kind::SlowReplication],
        bounds: ClassBounds::Beyond,
        assumes: Assumes::TooMuch,
        ..QUIET
    },
    EVERYTHING,
    Class {
        id: "everything, amnesia",
        title: "the same; nodes of a minority (or the only node) restart without their data",
        persistence: Persistence::Memory,
        assumes: Assumes::TooMuch,
        ..EVERYTHING
    },
];
