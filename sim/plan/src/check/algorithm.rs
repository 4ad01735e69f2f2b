//! Checks plans of registered algorithms.

use super::{PlanError, wrong};
use crate::variant::{Algorithm, AlgorithmNodes};
use crate::{LockKind, NodeKind, Plan, WorkloadKind};

/// Returns whether work acquires one name at a time and releases it, and does nothing else with a lock.
pub(super) fn is_plain(kind: WorkloadKind) -> bool {
    matches!(
        kind,
        WorkloadKind::MutualExclusion
            | WorkloadKind::UnfencedWrites
            | WorkloadKind::FencedWrites
            | WorkloadKind::FencedUpdates
            | WorkloadKind::RaisedUpdates
            | WorkloadKind::LongWork
            | WorkloadKind::TryStorm
    )
}

/// Checks that a plan has the nodes of its algorithm.
pub(super) fn check(plan: &Plan, algorithm: Algorithm) -> Result<(), PlanError> {
    let seats = 0..plan.nodes.count;
    let are_all = |kind| seats.clone().all(|seat| plan.nodes.kind(seat) == kind);
    let (is_met, needed) = match algorithm.nodes() {
        AlgorithmNodes::Server => (
            plan.lock == LockKind::Single && are_all(NodeKind::Server),
            "lock = \"single\" on a server",
        ),
        AlgorithmNodes::Majority => (
            plan.lock == LockKind::Redlock && are_all(NodeKind::Server),
            "lock = \"redlock\" on servers",
        ),
        AlgorithmNodes::Database => (
            plan.lock == LockKind::Single && are_all(NodeKind::Database),
            "lock = \"single\" and nodes.kinds = [\"database\"]",
        ),
        AlgorithmNodes::Consensus => (
            plan.lock == LockKind::Single && are_all(NodeKind::Consensus),
            "lock = \"single\" and nodes.kinds = [\"consensus\"]",
        ),
    };
    match is_met {
        true => Ok(()),
        false => Err(wrong(
            "variant",
            format!("{} needs {needed}", algorithm.name()),
        )),
    }
}
