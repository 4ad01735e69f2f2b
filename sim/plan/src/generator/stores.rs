//! Draws stores. They have their own stream of random numbers, so that plans without stores do not change.

mod shape;

use super::FaultChoice;
use super::preset::Preset;
use crate::draw::{Draw, Purpose};
use crate::fault::Kind;
use crate::time::SimTime;
use crate::variant::{Algorithm, AlgorithmNodes};
use crate::{LockKind, NodeKind, Persistence, Plan, WorkloadKind};

/// Turns nodes of a plan into stores. Returns whether faults are drawn in addition to those that it places.
pub(super) fn add(plan: &mut Plan, faults: &FaultChoice) -> Preset {
    let mut draw = Draw::new(plan.seed, Purpose::Stores, 0);
    let draw = &mut draw;
    let nodes = &mut plan.nodes;
    let kinds = match plan.variant.algorithm().map(Algorithm::nodes) {
        Some(AlgorithmNodes::Database) => &[NodeKind::Database][..],
        Some(_) => &[NodeKind::Consensus],
        None => match plan.lock {
            LockKind::Redlock => &[NodeKind::Database, NodeKind::Consensus, NodeKind::Server][..],
            LockKind::Single | LockKind::Multi => &[NodeKind::Database, NodeKind::Consensus],
        },
    };
    let drawn = |_| kinds.get(draw.index(kinds.len())).copied();
    nodes.kinds = (0..nodes.count).filter_map(drawn).collect();
    // A majority that happened to be of servers alone would be the deployment without stores.
    if let Some(first) = nodes.kinds.first_mut()
        && !first.is_store()
    {
        *first = NodeKind::Database;
    }
    nodes.replication_lag = SimTime::micros(draw.between(100, 3_000));
    if matches!(faults, FaultChoice::Only(kinds) if kinds.contains(&Kind::Failover)) {
        nodes.replicas = nodes.replicas.max(1);
    }
    if *faults == FaultChoice::Inside && nodes.persistence == Persistence::EverySecond {
        // A database that forgets under the same identity breaks a lock, unless it stays away for a lease: that is a shape.
        nodes.persistence = Persistence::Memory;
    }
    let is_plain = plan.workload.kind == WorkloadKind::MutualExclusion;
    let preset = match faults {
        FaultChoice::Inside | FaultChoice::All if is_plain && draw.chance(400_000) => {
            shape::give(plan, draw);
            Preset::Shaped
        }
        _ => Preset::Mixed,
    };
    come_near(plan);
    preset
}

/// Shortens the ways to stores, so that an acquire can end within the time that a client gives to a node by default. It reads the
/// record, writes it, and reads the marker.
///
/// With a lease of 61 ms and ways of 7 ms, calls of two clients that compete for three names end too early again and again, and
/// neither acquires them for a second.
fn come_near(plan: &mut Plan) {
    let third = plan.workload.lease.as_nanos() / 3;
    let answered_within = third.min(SimTime::millis(25).as_nanos());
    let network = &mut plan.network;
    network.max = network.max.min(SimTime::nanos(answered_within / 6));
    network.min = network.min.min(network.max);
}

#[cfg(test)]
mod tests {
    use crate::generator::{Deployment, PlanGenerator};
    use crate::time::SimTime;

    /// In this seed two clients made no progress, because each call ended before a store could have answered it.
    #[test]
    fn stores_are_near_enough_to_answer() {
        for seed in (0..500).chain([570_412_515_512]) {
            let generator = PlanGenerator {
                deployment: Deployment::Stores,
                ..PlanGenerator::default()
            };
            let plan = generator.plan(seed);
            let third = plan.workload.lease.as_nanos() / 3;
            let answered_within = third.min(SimTime::millis(25).as_nanos());
            let three_trips = 6 * plan.network.max.as_nanos();
            assert!(three_trips <= answered_within, "seed {seed}");
        }
    }
}
