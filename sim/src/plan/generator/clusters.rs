//! Clusters, drawn. They have dice of their own, as groups have.

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
    // What a claim rests on that no election loses: every replica has it, or a majority of shards has elected no other primary.
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
    // Nodes are asked one after another within this, the last also if those before swallow the question.
    plan.network.connect_timeout = SimTime::millis(draw.between(400, 900));
    if is_inside {
        nodes.persistence = Persistence::EveryWrite;
        // Nodes of a cluster take each other's keys over: their clocks agree.
        plan.faults
            .retain(|fault| !matches!(&fault.what, FaultKind::Node { .. }));
    }
}

/// Whether a kind of fault is allowed in the cluster of a plan: what elections may lose and what is moved are not in one run, because
/// keys that were moved are on the replicas of their new owner later.
pub(super) fn is_inside(kind: Kind, plan: &Plan) -> bool {
    let elects = Draw::new(plan.seed, Purpose::Clusters, 1).chance(500_000);
    match kind {
        Kind::MigrateSlot => !elects,
        Kind::PauseNode | Kind::CrashNode | Kind::IsolatePrimary | Kind::ClusterFailover => elects,
        _ => true,
    }
}

/// A fault of a cluster.
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

/// The shard that a fault strikes for which any of them was drawn.
pub(super) fn struck(node: u16, plan: &Plan, inside: bool, draw: &mut Draw) -> u16 {
    if plan.is_one_cluster() {
        // It has all names at first.
        return if draw.chance(500_000) { 0 } else { node };
    }
    // Elections are held by one minority of the shards.
    let minority = plan.nodes.count.saturating_sub(1) / 2;
    if inside { node % minority.max(1) } else { node }
}
