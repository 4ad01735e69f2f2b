//! Locks of several clients together, and writing and reading by one owner at the same time.

use crate::draw::Draw;
use crate::fault::{Fault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, Persistence, Plan, WorkloadKind};

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    let kind = match plan.lock {
        LockKind::Multi => WorkloadKind::Together,
        LockKind::Single | LockKind::Redlock => WorkloadKind::Sides,
    };
    plan.workload.kind = fixed.unwrap_or(kind);
    if plan.workload.kind != WorkloadKind::Together {
        return;
    }
    let workload = &mut plan.workload;
    workload.names = draw.between(2, 4) as u16;
    workload.lease = SimTime::millis(draw.between(60, 160));
    let lease = workload.lease.as_nanos();
    workload.hold_min = SimTime::nanos(lease / 2);
    workload.hold_max = SimTime::nanos(3 * lease);
    workload.checks = 8;
    if draw.chance(500_000) {
        forget(plan, draw);
    }
}

/// Repeatedly restarts nodes without their data. Their clients watch them, so such a node grants no lock until the
/// longest lease of its clients has passed. Each node has the only counter of its tokens.
fn forget(plan: &mut Plan, draw: &mut Draw) {
    plan.nodes.persistence = Persistence::Memory;
    plan.not_demanded.push(Property::Fencing);
    let last = plan.duration.as_nanos() / 10 * 6;
    for node in 0..plan.nodes.count {
        for _ in 0..draw.between(1, 3) {
            let at = SimTime::nanos(draw.between(0, last));
            let away = SimTime::micros(draw.between(100, 20_000));
            let crash = Fault::of_node(at, node, NodeFault::Crash);
            plan.faults.push(crash.lasting(away));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::generator::PlanGenerator;
    use crate::{LockKind, WorkloadKind};

    #[test]
    fn a_plan_in_eleven_is_of_several_clients_or_of_both_sides() {
        let kinds = [
            (LockKind::Multi, WorkloadKind::Together),
            (LockKind::Single, WorkloadKind::Sides),
            (LockKind::Redlock, WorkloadKind::Sides),
        ];
        for (lock, kind) in kinds {
            let generator = PlanGenerator {
                lock,
                ..PlanGenerator::default()
            };
            let plans = (0..1_000).map(|seed| generator.plan(seed));
            let drawn = plans.filter(|plan| plan.workload.kind == kind);
            let many = drawn.inspect(|plan| crate::check(plan).unwrap()).count();
            assert!((60..=130).contains(&many), "{lock:?}: {many}");
        }
    }
}
