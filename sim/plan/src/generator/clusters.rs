//! Draws clusters. Like groups, they have their own stream of random numbers.

use super::FaultChoice;
use crate::draw::{Draw, Purpose};
use crate::fault::{FaultKind, Kind};
use crate::time::SimTime;
use crate::{Cluster, Coverage, MinReplicas, Persistence, Plan, Wait};

/// Turns the nodes of a plan into the shards of one cluster.
pub(super) fn add(plan: &mut Plan, faults: &FaultChoice) {
    let mut draw = Draw::new(plan.seed, Purpose::Clusters, 0);
    let draw = &mut draw;
    // Whether the cluster is one node is a question about a plan that has a cluster. Its times are drawn below.
    plan.nodes.cluster = Some(Cluster::default());
    let is_one = plan.is_one_cluster();
    let nodes = &mut plan.nodes;
    nodes.replicas = if is_one { draw.between(1, 2) as u16 } else { 1 };
    nodes.replication_lag = SimTime::micros(draw.between(100, 3_000));
    let waits = draw.chance(300_000);
    let within = SimTime::millis(draw.between(10, 60));
    let demands = draw.chance(200_000);
    let max_lag = SimTime::millis(draw.between(0, 100));
    let is_inside = *faults == FaultChoice::Inside;
    // No election loses a claim that every replica has. A claim also survives on a majority of shards without an
    // election.
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
    // Within this time, the client tries one node after another. If the others do not answer, it must still reach the
    // last one.
    plan.network.connect_timeout = SimTime::millis(draw.between(400, 900));
    if is_inside {
        nodes.persistence = Persistence::EveryWrite;
        // The nodes of a cluster take over each other's keys, so their clocks must agree.
        plan.faults
            .retain(|fault| !matches!(&fault.what, FaultKind::Node { .. }));
    }
}

/// Returns whether a kind of fault is allowed in the cluster of a plan. A run never has both elections and moves of
/// slots: moved keys reach the replicas of their new owner later, so an election could lose them.
pub(super) fn is_inside(kind: Kind, plan: &Plan) -> bool {
    let elects = Draw::new(plan.seed, Purpose::Clusters, 1).chance(500_000);
    match kind {
        Kind::MigrateSlot => !elects,
        kind => elects || !kind.leads_to_election(),
    }
}

/// Returns the shard that a fault strikes, given a node that was drawn from all nodes.
pub(super) fn struck(node: u16, plan: &Plan, inside: bool, draw: &mut Draw) -> u16 {
    if plan.is_one_cluster() {
        // When the run begins, node 0 owns the slots of all names.
        return if draw.chance(500_000) { 0 } else { node };
    }
    // Elections occur only in one minority of the shards.
    let minority = plan.nodes.count.saturating_sub(1) / 2;
    if inside { node % minority.max(1) } else { node }
}

#[cfg(test)]
mod tests {
    use crate::generator::{Deployment, PlanGenerator};
    use crate::{Lane, LockKind, Wait};

    #[test]
    fn claims_in_a_cluster_that_is_one_node_count_when_all_replicas_have_them() {
        let generator = PlanGenerator {
            lane: Lane::Turmoil,
            deployment: Deployment::Clusters,
            lock: LockKind::Single,
            ..PlanGenerator::default()
        };
        let mut drawn = [0; 3];
        for seed in 0..100 {
            let plan = generator.plan(seed);
            let replicas = plan.nodes.replicas;
            let awaited = plan.nodes.wait.map(|Wait { replicas, .. }| replicas);
            assert_eq!(awaited, Some(replicas), "seed {seed}");
            drawn[usize::from(replicas)] += 1;
        }
        assert!(drawn[0] == 0 && 20 < drawn[1] && 20 < drawn[2], "{drawn:?}");
    }
}
