//! Clients on two sides, whose majorities share only nodes that lose data, or nodes whose clocks are set.
//!
//! Of three nodes, one side reaches the first and the second, and the other side the first and the third. So a single
//! wrong grant by the first node, or a grant that should not count, gives the lock to both sides.

use super::{Fixed, connections, whole_leases};
use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::{ClockStep, SimTime};
use crate::{LockKind, Persistence, Plan, Watchdog};

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let Fixed { nodes, work, .. } = fixed;
    if plan.lock == LockKind::Redlock && plan.nodes.count == 1 && nodes.is_none() {
        plan.nodes.count = 3;
    }
    if plan.lock != LockKind::Redlock || plan.nodes.count < 3 || plan.nodes.count.is_multiple_of(2)
    {
        return connections::apply(plan, work, draw);
    }
    whole_leases(plan, work, draw);
    if draw.chance(200_000) {
        plan.workload.watchdog = Watchdog::On;
    }
    plan.workload.poll_cap = SimTime::millis(draw.between(3, 40));
    plan.workload.backoff_cap = SimTime::millis(draw.between(2, 20));
    plan.duration = plan.duration.max(SimTime::secs(3));
    plan.healed_at = Some(plan.duration);
    // Each side may be excluded while the other one keeps winning, and both may be excluded during a quarantine.
    plan.not_demanded.push(Property::Progress);
    let lease = plan.workload.lease.as_nanos();
    // Longer than a lease, so that a reply may still arrive when the claim that it grants has ended.
    plan.network.call_timeout = SimTime::nanos(lease).plus(SimTime::millis(draw.between(0, 400)));
    if draw.chance(400_000) {
        // Requests in flight may be older than the process that they reach. A member has 25 ms to answer.
        let min = plan.network.min;
        plan.network.max = min.plus(SimTime::millis(draw.between(2, 9)));
        // Competitors that try again before a round has ended would split the votes forever.
        plan.workload.backoff_cap = SimTime::nanos(plan.network.max.as_nanos() * 4);
        plan.workload.poll_cap = plan.workload.backoff_cap;
    }
    let shared = plan.nodes.count / 2;
    for client in 0..plan.clients {
        let own = shared + client % 2;
        plan.faults.push(Fault {
            when: SimTime::ZERO.into(),
            lasts: plan.duration,
            what: FaultKind::Link {
                clients: vec![client],
                nodes: (shared..plan.nodes.count)
                    .filter(|node| *node != own)
                    .collect(),
                direction: Direction::Both,
                fault: LinkFault::Cut,
            },
        });
    }
    match draw.between(0, 3) {
        0 => set(plan, draw, shared),
        1 => {}
        _ => restart(plan, draw, shared),
    }
}

/// Repeatedly restarts shared nodes without their data.
fn restart(plan: &mut Plan, draw: &mut Draw, shared: u16) {
    plan.nodes.persistence = Persistence::Memory;
    let lease = plan.workload.lease.as_nanos();
    let last = plan.duration.as_nanos() / 10 * 9;
    let mut at = draw.between(0, 3 * lease);
    while at < last {
        // If both sides share several nodes, each of these must lose its data before the other side gets a majority.
        for node in 0..shared {
            let lasts = SimTime::micros(draw.between(100, 20_000));
            let crash = Fault::of_node(SimTime::nanos(at), node, NodeFault::Crash);
            plan.faults.push(crash.lasting(lasts));
        }
        at += draw.between(lease, 6 * lease);
    }
}

/// Sets the clocks of shared nodes forwards, within the margin.
fn set(plan: &mut Plan, draw: &mut Draw, shared: u16) {
    let margin = plan.clock_margin().as_nanos() / 1_000_000;
    if margin == 0 {
        return;
    }
    let lease = plan.workload.lease.as_nanos();
    let last = plan.duration.as_nanos() / 10 * 9;
    let mut at = draw.between(0, lease);
    while at < last {
        for node in 0..shared {
            let max = i64::try_from(margin).unwrap_or(i64::MAX).saturating_sub(1);
            let by = ClockStep::millis(draw.signed(max / 2, max));
            let step = Fault::of_node(SimTime::nanos(at), node, NodeFault::Step { by });
            plan.faults.push(step);
        }
        at += draw.between(3 * lease, 6 * lease);
    }
}
