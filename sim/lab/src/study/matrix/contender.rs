//! The locks that the matrix compares.

use super::class::{Assumes, Class};
use crate::algorithm::{self, AlgorithmNodes, LockAlgorithm};
use quorlock_sim_plan::fault::Kind;
use quorlock_sim_plan::generator::{Deployment, FaultChoice, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{
    Cluster, Lane, LockKind, NodeKind, Plan, Remedies, Sentinels, Wait, WorkloadKind,
};

/// A lock of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The name of the lock in tables.
    pub id: &'static str,
    /// A description of the lock.
    pub title: &'static str,
    pub(super) lock: LockKind,
    pub(super) variant: Variant,
    trust: Trust,
    margin: Margin,
    replicas: ReplicaWait,
    deployment: Deployment,
    /// The kinds of the nodes, if they are stores.
    kinds: &'static [NodeKind],
    /// The algorithm, if it is a registered one.
    algorithm: Option<&'static dyn LockAlgorithm>,
}

/// Whether a restarted node is watched before its vote counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trust {
    On,
    Off,
}

/// Whether a node keeps a claim longer than its lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Margin {
    On,
    Off,
}

/// Whether a grant counts before a replica has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplicaWait {
    NotAwaited,
    Awaited,
}

/// The product's lock on one node, without remedies: the same as plain Redisson.
const OURS_SINGLE: Candidate = Candidate {
    id: "ours, one node",
    title: "the lock of this crate on one node",
    lock: LockKind::Single,
    variant: Variant::Product,
    trust: Trust::Off,
    margin: Margin::Off,
    replicas: ReplicaWait::NotAwaited,
    deployment: Deployment::Servers,
    kinds: &[],
    algorithm: None,
};

/// The product's lock on a majority.
pub(super) const OURS: Candidate = Candidate {
    id: "ours",
    title: "RedLock of this crate on three or five nodes, with its defaults",
    lock: LockKind::Redlock,
    trust: Trust::On,
    margin: Margin::On,
    ..OURS_SINGLE
};

/// All locks of the matrix.
pub const CONTENDERS: &[Candidate] = &[
    Candidate {
        id: "SET NX, DEL",
        title: "one node: `SET NX PX`, released by a plain `DEL`",
        variant: Variant::SetNxDel,
        ..OURS_SINGLE
    },
    Candidate {
        id: "SET NX, GET, DEL",
        title: "one node: `SET NX PX`, released by `GET`, a comparison and `DEL`",
        variant: Variant::GetThenDel,
        ..OURS_SINGLE
    },
    Candidate {
        id: "SET NX, compare",
        title: "one node: `SET NX PX`, released by compare-and-delete",
        variant: Variant::SetNx,
        ..OURS_SINGLE
    },
    OURS_SINGLE,
    Candidate {
        id: "ours, WAIT 1",
        title: "the same with one replica, which must confirm a claim before it counts",
        replicas: ReplicaWait::Awaited,
        ..OURS_SINGLE
    },
    Candidate {
        id: "ours, a Sentinel group",
        title: "the same on a Sentinel group (a primary, two replicas, three sentinels) without `WAIT`, through the real client: elections follow the faults; a tenth of the runs",
        deployment: Deployment::Groups,
        ..OURS_SINGLE
    },
    Candidate {
        id: "ours, a cluster",
        title: "the same on a Redis Cluster (three primaries, three replicas) without `WAIT`, through the real client: elections follow the faults; a tenth of the runs",
        deployment: Deployment::Clusters,
        ..OURS_SINGLE
    },
    Candidate {
        id: "ours, MultiLock",
        title: "several names, each on one of two nodes",
        lock: LockKind::Multi,
        ..OURS_SINGLE
    },
    Candidate {
        id: "published",
        title: "Redlock as published, on three or five nodes, with a holder that checks its deadline, and with the tokens of this crate",
        variant: Variant::Published,
        ..OURS
    },
    Candidate {
        id: "published, counters",
        title: "the same, with the largest of the nodes' counters as token",
        variant: Variant::CounterTokens,
        ..OURS
    },
    Candidate {
        id: "ours, neither",
        title: "RedLock of this crate without trust and margin",
        trust: Trust::Off,
        margin: Margin::Off,
        ..OURS
    },
    Candidate {
        id: "ours, no trust",
        title: "RedLock of this crate without trust in nodes",
        trust: Trust::Off,
        ..OURS
    },
    Candidate {
        id: "ours, no margin",
        title: "RedLock of this crate without the clock margin",
        margin: Margin::Off,
        ..OURS
    },
    OURS,
    Candidate {
        id: "ours, a majority of Sentinel groups",
        title: "the same on three Sentinel groups (a primary, a replica, three sentinels each), through the real client: faults of nodes affect one of them; a tenth of the runs",
        deployment: Deployment::Groups,
        ..OURS
    },
    Candidate {
        id: "ours, a majority of shards",
        title: "the same on the three shards of one Redis Cluster (a primary and a replica each), through the real client: faults of nodes affect one of them; a tenth of the runs",
        deployment: Deployment::Clusters,
        ..OURS
    },
    Candidate {
        id: "ours, a consensus store",
        title: "this crate's lock on records of a consensus store, such as etcd: it has no clock, and forgets nothing when its leader changes",
        deployment: Deployment::Stores,
        kinds: &[NodeKind::Consensus],
        ..OURS_SINGLE
    },
    Candidate {
        id: "ours, a database with a replica",
        title: "this crate's lock on records of a database, such as PostgreSQL, with an asynchronous replica",
        deployment: Deployment::Stores,
        kinds: &[NodeKind::Database],
        ..OURS_SINGLE
    },
    Candidate {
        id: "ours, a majority of unlike stores",
        title: "this crate's majority on a server, a database with an asynchronous replica, and a consensus store",
        deployment: Deployment::Stores,
        kinds: &[NodeKind::Server, NodeKind::Database, NodeKind::Consensus],
        ..OURS
    },
];

/// The locks that only storms have: for work that the other locks cannot do.
#[cfg(unix)]
pub(crate) const STORM_LOCKS: &[Candidate] = &[Candidate {
    id: "ours, one node, writers beside readers",
    title: "the lock of this crate on one node; writers do not keep readers out, and readers do not keep writers out",
    variant: Variant::WriterBesideReaders,
    ..OURS_SINGLE
}];

/// Returns the locks that a matrix has: those of this crate and published ones, and every registered algorithm.
#[must_use]
pub fn contenders() -> Vec<Candidate> {
    let registered = algorithm::registered().into_iter();
    let own = registered.filter_map(Candidate::own);
    CONTENDERS.iter().copied().chain(own).collect()
}

impl Candidate {
    /// Returns the plan of a seed. The clients and the work are the same for all locks. The faults are the same for
    /// locks with the same nodes.
    #[must_use]
    pub fn plan(&self, class: &Class, seed: u64) -> Plan {
        let majority = if seed.is_multiple_of(2) { 3 } else { 5 };
        let workloads = [
            WorkloadKind::MutualExclusion,
            WorkloadKind::FencedWrites,
            WorkloadKind::LongWork,
        ];
        let workload = workloads.get((seed / 2 % 3) as usize);
        let mut plan = PlanGenerator {
            lane: self.lane(),
            deployment: Deployment::Servers,
            faults: FaultChoice::None,
            lock: self.lock,
            variant: self.variant,
            nodes: Some(self.nodes(majority)),
            clients: None,
            workload: workload.copied(),
            duration: None,
        }
        .plan(seed);
        // Some sections last until the lease ends, so that a claim that ends early has consequences.
        plan.workload.hold_max = plan.workload.hold_max.max(plan.workload.lease);
        self.dress(&mut plan, class, majority);
        class.add_to(&mut plan);
        plan
    }

    /// Returns the lane of the lock's plans.
    pub(super) fn lane(&self) -> Lane {
        match self.deployment {
            Deployment::Servers | Deployment::Stores => Lane::Fast,
            // Only in this lane does the client itself find the primary.
            Deployment::Groups | Deployment::Clusters => Lane::Turmoil,
        }
    }

    /// Adapts a plan to this lock. `majority` is the number of nodes if a majority decides.
    pub(super) fn dress(&self, plan: &mut Plan, class: &Class, majority: u16) {
        plan.lock = self.lock;
        plan.variant = self.variant;
        plan.nodes.count = self.nodes(majority);
        plan.remedies = Remedies {
            trust: self.trust == Trust::On,
            margin: (self.margin == Margin::Off).then_some(SimTime::ZERO),
            ..Remedies::default()
        };
        plan.nodes.persistence = class.persistence;
        let is_awaited = self.replicas == ReplicaWait::Awaited;
        plan.nodes.replicas = u16::from(is_awaited || class.needs_replicas());
        plan.nodes.wait = is_awaited.then(|| Wait {
            replicas: 1,
            within: SimTime::millis(20),
        });
        let is_majority = self.lock == LockKind::Redlock;
        if self.elects() {
            // The client tries all sentinels, or all nodes, one after another within this time.
            plan.network.connect_timeout = SimTime::millis(600);
        }
        match self.deployment {
            Deployment::Servers => {}
            Deployment::Stores => {
                plan.nodes.replicas = 1;
                // Any of them may be the one that faults strike.
                plan.nodes.kinds = self.kinds.to_vec();
                plan.nodes
                    .kinds
                    .rotate_left((plan.seed % self.kinds.len() as u64) as usize);
            }
            Deployment::Groups => {
                plan.nodes.replicas = if is_majority { 1 } else { 2 };
                plan.nodes.sentinels = Some(Sentinels::default());
            }
            Deployment::Clusters => {
                plan.nodes.replicas = 1;
                plan.nodes.cluster = Some(Cluster::default());
            }
        }
    }

    fn nodes(&self, majority: u16) -> u16 {
        match (self.lock, self.deployment) {
            (LockKind::Single, Deployment::Clusters) => 3,
            (LockKind::Single, _) => 1,
            (LockKind::Multi, _) => 2,
            (LockKind::Redlock, Deployment::Servers) => majority,
            // Each node consists of several hosts, or is of a kind of its own.
            (LockKind::Redlock, _) => 3,
        }
    }

    /// Returns whether members elect their primaries.
    fn elects(&self) -> bool {
        matches!(self.deployment, Deployment::Groups | Deployment::Clusters)
    }

    /// Returns whether a storm of a class can strike the lock on real servers. A lock on Sentinel groups has faults
    /// that lead to elections, and no others; a lock on a cluster has failovers and moved slots. Storms have no stores.
    #[cfg(unix)]
    pub(crate) fn meets(&self, class: &Class) -> bool {
        self.deployment != Deployment::Stores
            && class.needs_sentinels() == (self.deployment == Deployment::Groups)
            && class.needs_a_cluster() == (self.deployment == Deployment::Clusters)
    }

    /// Returns how many runs this lock gets, given the number of runs per lock. Runs over sockets take about thirty
    /// times as long.
    pub(super) fn runs_of(&self, runs: u64) -> u64 {
        match self.deployment {
            Deployment::Servers | Deployment::Stores => runs,
            Deployment::Groups | Deployment::Clusters => runs.div_ceil(10),
        }
    }

    /// Returns whether a replica that lacks claims or counters may be promoted.
    fn may_fail_over(&self, class: &Class) -> bool {
        self.elects() && class.leads_to_elections()
    }

    /// Returns what the lock needs to hold under a class. One store withstands by itself what it does not notice.
    fn needs(&self, class: &Class) -> Assumes {
        let unnoticed: &[Kind] = match self.kinds {
            [NodeKind::Consensus] => &[
                Kind::CrashNode,
                Kind::PowerLoss,
                Kind::NodeStep,
                Kind::Failover,
                Kind::SlowReplication,
            ],
            [NodeKind::Database] => &[Kind::PowerLoss],
            _ => &[],
        };
        match class.kinds.iter().all(|kind| unnoticed.contains(kind)) {
            true => Assumes::Nothing,
            false => class.assumes,
        }
    }

    /// Returns whether the members without an election make up for what a promoted replica lacks.
    fn outlives_failovers(&self, class: &Class) -> bool {
        let is_claimed = matches!(class.assumes, Assumes::Nothing | Assumes::Trust);
        self.lock == LockKind::Redlock && self.trust == Trust::On && is_claimed
    }

    /// Returns the lock of a registered algorithm.
    fn own(algorithm: &'static dyn LockAlgorithm) -> Option<Self> {
        let variant = algorithm.name().parse().ok()?;
        let own = Candidate {
            id: algorithm.name(),
            title: algorithm.title(),
            variant,
            algorithm: Some(algorithm),
            ..OURS_SINGLE
        };
        let stores = |kinds| Candidate {
            deployment: Deployment::Stores,
            kinds,
            ..own
        };
        Some(match algorithm.nodes() {
            AlgorithmNodes::Server => own,
            AlgorithmNodes::Majority => Candidate {
                lock: LockKind::Redlock,
                ..own
            },
            AlgorithmNodes::Database => stores(&[NodeKind::Database]),
            AlgorithmNodes::Consensus => stores(&[NodeKind::Consensus]),
        })
    }

    fn is_ours(&self) -> bool {
        self.variant == Variant::Product
    }

    /// Returns whether the lock claims exclusion under a class of fault: at most one client believes that it holds the
    /// lock.
    #[must_use]
    pub fn keeps_exclusion(&self, class: &Class) -> bool {
        if let Some(own) = self.algorithm {
            return own.claims(Property::Exclusion, class.id);
        }
        self.is_ours()
            && (!self.may_fail_over(class) || self.outlives_failovers(class))
            && match self.needs(class) {
                Assumes::Nothing => true,
                Assumes::Trust => self.trust == Trust::On,
                Assumes::Margin => self.margin == Margin::On,
                Assumes::Remedies => self.trust == Trust::On && self.margin == Margin::On,
                Assumes::Counters | Assumes::TooMuch => false,
            }
    }

    /// Returns whether the lock claims under a class of fault that its tokens are unique and grow.
    #[must_use]
    pub fn keeps_order(&self, class: &Class) -> bool {
        if let Some(own) = self.algorithm {
            return own.claims(Property::Fencing, class.id);
        }
        self.is_ours()
            && (!self.may_fail_over(class) || self.outlives_failovers(class))
            && match self.needs(class) {
                // An evicted record of a store takes its counter with it.
                Assumes::Counters => self.kinds.is_empty() || !class.kinds.contains(&Kind::Evict),
                Assumes::Nothing | Assumes::Margin => true,
                // If a token that only a bare majority accepted is lost with one counter, only the clocks of the nodes
                // keep the order. In this class, these clocks are right.
                Assumes::Trust | Assumes::Remedies => self.trust == Trust::On,
                Assumes::TooMuch => false,
            }
    }
}
