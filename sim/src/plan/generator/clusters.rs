//! Draws clusters. They have their own random stream, as groups have.

use super::FaultChoice;
use crate::plan::draw::{Draw, Purpose};
use crate::plan::fault::{FaultKind, Handover, Kind, NodeFault};
use crate::plan::time::SimTime;
use crate::plan::{Cluster, Coverage, MinReplicas, Persistence, Plan, Wait};

/// Makes the nodes of a plan the shards of one cluster.
pub(super) fn add(plan: &mut Plan, faults: &FaultChoice) {
    let mut draw = Draw::new(plan.seed, Purpose::Clusters, 0);
    let draw = &mut draw;
    let is_one = plan.is_one_cluster();
    let nodes = &mut plan.nodes;
    nodes.replicas = if is_one { draw.between(1, 2) as u16 } else { 1 };
    nodes.replication_lag = SimTime::micros(draw.between(100, 3_000));
    let waits = draw.chance(300_000);
    let within = SimTime::millis(draw.between(10, 60));
    let demands = draw.chance(200_000);
    let max_lag = SimTime::millis(draw.between(0, 100));
    let is_inside = *faults == FaultChoice::Inside;
    // No election loses a claim that every replica has, or that a majority of shards without an election has.
    nodes.wait = ((is_inside && is_one) || waits).then_some(Wait {
        replicas: nodes.replicas,
        within,
    });
    nodes.min_replicas = demands.then_some(MinReplicas { count: 1, max_lag });
    nodes.cluster = Some(Cluster {
        node_timeout: SimTime::millis(draw.between(20, 150)),
        election: SimTime::millis(draw.between(2, 40)),
        gossip: SimTime::millis(draw.between(1, 40)),
        coverage: match draw.chance(500_000) {
            true => Coverage::Full,
            false => Coverage::Partial,
        },
    });
    // Within this time the client asks one node after another: it must also reach the last one if the others do not
    // answer.
    plan.network.connect_timeout = SimTime::millis(draw.between(400, 900));
    if is_inside {
        nodes.persistence = Persistence::EveryWrite;
        // Nodes of a cluster take over each other's keys: their clocks must agree.
        plan.faults
            .retain(|fault| !matches!(&fault.what, FaultKind::Node { .. }));
    }
}

/// Returns whether a kind of fault is allowed in the cluster of a plan. Elections and moves of slots never occur in
/// one run: moved keys reach the replicas of their new owner later, so an election could lose them.
pub(super) fn is_inside(kind: Kind, plan: &Plan) -> bool {
    let elects = Draw::new(plan.seed, Purpose::Clusters, 1).chance(500_000);
    match kind {
        Kind::MigrateSlot => !elects,
        Kind::PauseNode | Kind::CrashNode | Kind::IsolatePrimary | Kind::ClusterFailover => elects,
        _ => true,
    }
}

/// Draws a fault of a cluster.
pub(super) fn fault(kind: Kind, plan: &Plan, lasts: SimTime, draw: &mut Draw) -> NodeFault {
    if kind == Kind::ClusterFailover {
        return NodeFault::ClusterFailover {
            how: match draw.chance(500_000) {
                true => Handover::Manual,
                false => Handover::Takeover,
            },
        };
    }
    NodeFault::MigrateSlot {
        name: draw.index(usize::from(plan.workload.names)) as u16,
        to: draw.index(usize::from(plan.nodes.count)) as u16,
        gap: match draw.chance(300_000) {
            true => SimTime::micros(draw.between(0, lasts.as_nanos() / 2_000)),
            false => SimTime::ZERO,
        },
    }
}

/// Returns the shard that a fault strikes, given a node that was drawn from all.
pub(super) fn struck(node: u16, plan: &Plan, inside: bool, draw: &mut Draw) -> u16 {
    if plan.is_one_cluster() {
        // At first, node 0 owns the slots of all names.
        return if draw.chance(500_000) { 0 } else { node };
    }
    // Only one minority of the shards has elections.
    let minority = plan.nodes.count.saturating_sub(1) / 2;
    if inside { node % minority.max(1) } else { node }
}
