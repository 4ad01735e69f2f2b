//! The classes of fault.

use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::{ClientFault, Fault, FaultKind, Kind, Needs, NodeFault, Suspended};
use quorlock_sim_plan::generator::FaultGenerator;
use quorlock_sim_plan::time::ClockStep;
use quorlock_sim_plan::{LockKind, Persistence, Plan};

/// A class of faults, with the bounds within which they are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// The name of the class in tables.
    pub id: &'static str,
    /// A description of the faults and of their bounds.
    pub title: &'static str,
    pub(super) kinds: &'static [Kind],
    pub(super) bounds: ClassBounds,
    pub(super) persistence: Persistence,
    pub(super) assumes: Assumes,
    pub(super) clients: Clients,
}

/// How often the clients of a storm use locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clients {
    /// All the time.
    Busy,
    /// So seldom that all nodes may restart in between.
    Idle,
}

/// The bounds within which faults are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClassBounds {
    /// Within the stated assumptions of the product's lock on a majority.
    Inside,
    /// Beyond these assumptions.
    Beyond,
}

/// The remedies that a lock needs to hold under a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Assumes {
    /// No remedies: every lock of the product holds under the class.
    Nothing,
    /// Watched nodes.
    Trust,
    /// Claims that nodes keep for longer than their leases.
    Margin,
    /// Watched nodes, and claims that nodes keep longer than their leases.
    Remedies,
    /// Token counters that are not lost. Only the order of tokens is claimed, not exclusion.
    Counters,
    /// Neither exclusion nor the order of tokens is claimed.
    TooMuch,
}

const QUIET: Class = Class {
    id: "quiet",
    title: "there are no faults",
    kinds: &[],
    bounds: ClassBounds::Inside,
    persistence: Persistence::EveryWrite,
    assumes: Assumes::Nothing,
    clients: Clients::Busy,
};

/// Faults that make sentinels promote a replica while servers keep running, and what clients then receive.
const SEPARATIONS: [Kind; 3] = [
    Kind::IsolatePrimary,
    Kind::SentinelFailover,
    Kind::StaleSentinel,
];

/// Faults that make a cluster promote a replica while servers keep running.
const HANDOVERS: [Kind; 2] = [Kind::IsolatePrimary, Kind::ClusterFailover];

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

impl Class {
    /// Returns whether the faults of the class need replicas.
    pub(super) fn needs_replicas(&self) -> bool {
        self.kinds.contains(&Kind::SlowReplication)
    }

    /// Returns whether the faults of the class need sentinels.
    #[cfg(unix)]
    pub(super) fn needs_sentinels(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| matches!(kind.needs(), Needs::Sentinels | Needs::Elections))
    }

    /// Returns whether the faults of the class need a cluster.
    #[cfg(unix)]
    pub(super) fn needs_a_cluster(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| kind.needs() == Needs::Cluster)
    }

    /// Returns whether sentinels may promote a replica because of the class.
    pub(super) fn leads_to_elections(&self) -> bool {
        let kinds = [Kind::PauseNode, Kind::CrashNode, Kind::Failover];
        kinds.iter().any(|kind| self.kinds.contains(kind))
    }

    /// Returns the kinds of faults of the class for a plan. If sentinels decide about failovers, these are the kinds
    /// that lead to failovers.
    fn kinds_for(&self, plan: &Plan) -> Vec<Kind> {
        let kinds = self.kinds.iter().flat_map(|kind| match kind {
            Kind::Failover if plan.nodes.sentinels.is_some() => &SEPARATIONS[..],
            Kind::Failover if plan.nodes.cluster.is_some() => &HANDOVERS[..],
            kind => std::slice::from_ref(kind),
        });
        kinds.copied().filter(|kind| plan.lane.has(*kind)).collect()
    }

    /// Adds one to four faults of the class to a plan, or up to a dozen if the class has many kinds.
    pub(super) fn add_to(&self, plan: &mut Plan) {
        if self.kinds.is_empty() {
            return;
        }
        let mut draw = Draw::new(plan.seed, Purpose::Matrix, 0);
        let kinds = self.kinds_for(plan);
        let max = if 10 < self.kinds.len() { 12 } else { 4 };
        for _ in 0..draw.between(1, max) {
            let kind = kinds.get(draw.index(kinds.len()));
            let kind = kind.copied().unwrap_or(Kind::Cut);
            let fault = self.fault(kind, plan, &mut draw);
            plan.faults.push(fault);
        }
        plan.faults.sort_by_key(Fault::begins);
    }

    pub(super) fn fault(&self, kind: Kind, plan: &Plan, draw: &mut Draw) -> Fault {
        // Nodes that lose data always belong to the same minority.
        let inside = self.bounds == ClassBounds::Inside || kind == Kind::CrashNode;
        let mut fault = FaultGenerator { draw, plan, inside }.fault(kind);
        if plan.nodes.are_groups() && plan.lock == LockKind::Redlock {
            // Groups with elections always belong to the same minority.
            let minority = plan.nodes.count.saturating_sub(1) / 2;
            if let FaultKind::Node { node, .. } = &mut fault.what {
                *node %= minority.max(1);
            }
        }
        if let FaultKind::Node { replica, .. } = &mut fault.what
            && self.needs_replicas()
            && kind.strikes_replicas()
        {
            let replicas = usize::from(plan.nodes.replicas).max(1);
            *replica = u16::try_from(draw.index(replicas)).ok();
        }
        match &mut fault.what {
            FaultKind::Client {
                fault: ClientFault::Suspend { clock },
                ..
            } if self.bounds == ClassBounds::Beyond => {
                *clock = Suspended::Stops;
            }
            // The steps are the same for every lock, whatever its margin.
            FaultKind::Node {
                node,
                fault: NodeFault::Step { by },
                ..
            } => {
                let lease = i64::try_from(plan.workload.lease.as_nanos() / 1_000_000).unwrap_or(0);
                let (back, forward) = match self.bounds {
                    // A node steps forwards only once, so that the sum of its steps is less than a lease.
                    ClassBounds::Inside if has_stepped(plan, *node) => (-lease, 0),
                    ClassBounds::Inside => (-lease, lease - 1),
                    ClassBounds::Beyond => (-4 * lease, 4 * lease),
                };
                *by = ClockStep::millis(draw.signed(back, forward));
            }
            _ => {}
        }
        fault
    }
}

fn has_stepped(plan: &Plan, node: u16) -> bool {
    let mut faults = plan.faults.iter();
    faults.any(|fault| fault.kind() == Kind::NodeStep && fault.nodes() == [node])
}
