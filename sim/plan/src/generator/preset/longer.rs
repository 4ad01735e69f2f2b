//! Some clients have longer leases than the other clients know of.
//!
//! A restarted node is watched for the longest lease that a client knows of. So a node must refuse clients with a
//! different longest lease. All three nodes have the value of the other clients, and the first node is restarted
//! without its data.

use super::{Fixed, sides, whole_leases};
use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, Persistence, Plan, Watchdog, WorkloadKind};

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    let is_plain = fixed
        .work
        .is_none_or(|kind| kind == WorkloadKind::MutualExclusion);
    if plan.lock != LockKind::Redlock || !is_of_three || !is_plain {
        return sides::apply(plan, fixed, draw);
    }
    plan.nodes.count = 3;
    plan.workload.lease = SimTime::millis(draw.between(80, 200));
    whole_leases(plan, Some(WorkloadKind::MutualExclusion), draw);
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::On;
    workload.longer = 1;
    let lease = workload.lease.as_nanos();
    workload.hold_min = SimTime::nanos(lease);
    workload.hold_max = SimTime::nanos(4 * lease);
    workload.checks = 30;
    workload.poll_cap = SimTime::millis(draw.between(2, 10));
    workload.backoff_cap = SimTime::millis(draw.between(2, 10));
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    // After the restart, the first node stores the longest lease of the first client that reaches it.
    plan.not_demanded.push(Property::Progress);
    plan.nodes.persistence = Persistence::Memory;
    // The last client reaches the first and the second node, the others reach the first and the third. While the first
    // node is down and after that, the last client receives nothing from it.
    let last = plan.clients.saturating_sub(1);
    for client in 0..plan.clients {
        let node = if client == last { 2 } else { 1 };
        plan.faults
            .push(cut(client, node, SimTime::ZERO, plan.duration));
    }
    let ends = plan.duration.as_nanos() / 10 * 8;
    let mut at = draw.between(lease, 4 * lease);
    while at < ends {
        let crash = Fault::of_node(SimTime::nanos(at), 0, NodeFault::Crash);
        plan.faults
            .push(crash.lasting(SimTime::micros(draw.between(50, 5_000))));
        let silent = SimTime::nanos(2 * lease);
        plan.faults.push(cut(last, 0, SimTime::nanos(at), silent));
        at += draw.between(4 * lease, 8 * lease);
    }
}

fn cut(client: u16, node: u16, at: SimTime, lasts: SimTime) -> Fault {
    let what = FaultKind::Link {
        clients: vec![client],
        nodes: vec![node],
        direction: Direction::Both,
        fault: LinkFault::Cut,
    };
    Fault {
        when: at.into(),
        lasts,
        what,
    }
}
