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

/// Faults that make sentinels promote a replica while servers keep running, and what clients then receive.
const SEPARATIONS: [Kind; 3] = [
    Kind::IsolatePrimary,
    Kind::SentinelFailover,
    Kind::StaleSentinel,
];

/// Faults that make a cluster promote a replica while servers keep running.
const HANDOVERS: [Kind; 2] = [Kind::IsolatePrimary, Kind::ClusterFailover];

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
            // Another leader takes over with everything that was acknowledged. Calls of the former one are lost.
            Kind::Failover if !plan.nodes.can_fail_over() => &[Kind::CrashNode][..],
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
