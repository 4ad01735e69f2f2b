//! Draws stores. They have their own stream of random numbers, so that plans without stores do not change.

use super::FaultChoice;
use crate::draw::{Draw, Purpose};
use crate::fault::Kind;
use crate::time::SimTime;
use crate::{LockKind, NodeKind, Plan, WorkloadKind};

/// Turns nodes of a plan into stores.
pub(super) fn add(plan: &mut Plan, faults: &FaultChoice) {
    let mut draw = Draw::new(plan.seed, Purpose::Stores, 0);
    let draw = &mut draw;
    let has_queue = matches!(
        plan.workload.kind,
        WorkloadKind::Fair | WorkloadKind::Together
    );
    let nodes = &mut plan.nodes;
    let kinds = match plan.lock {
        // Where there is no clock, waiters of a fair lock that keep their places hardly let time pass, and what a dead client
        // has left there stays too long for a bound on progress.
        _ if has_queue => &[NodeKind::Database][..],
        LockKind::Redlock => &[NodeKind::Database, NodeKind::Consensus, NodeKind::Server][..],
        LockKind::Single | LockKind::Multi => &[NodeKind::Database, NodeKind::Consensus],
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
}
