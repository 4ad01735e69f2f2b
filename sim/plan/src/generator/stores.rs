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
    match faults {
        FaultChoice::Inside | FaultChoice::All if is_plain && draw.chance(400_000) => {
            shape::give(plan, draw);
            Preset::Shaped
        }
        _ => Preset::Mixed,
    }
}
