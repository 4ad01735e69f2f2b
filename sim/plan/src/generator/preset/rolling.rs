//! A rolling deployment changes the longest lease: some clients have a longer one than the others.
//!
//! A restarted node is watched for the longest lease that a client knows of. So a client that does not know of longer
//! leases must not count a node that has lost the claim of one. Each strike restarts one node without its data, while one
//! client reaches only that node, and the clients with longer leases do not reach it. That client may be a new process,
//! which knows nothing. Strikes come before, during and after the raise.

use super::{Fixed, sides, whole_leases};
use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, Persistence, Plan, Watchdog, WorkloadKind};

/// Long enough for a raise, whose last stage waits for at least two seconds, and several strikes after it.
const DURATION: SimTime = SimTime::secs(9);

/// When the last stage has ended, if no node is restarted before.
const RAISED: SimTime = SimTime::millis(2_500);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    let is_plain = fixed
        .work
        .is_none_or(|kind| kind == WorkloadKind::MutualExclusion);
    if plan.lock != LockKind::Redlock || !is_of_three || !is_plain || plan.clients < 2 {
        return sides::apply(plan, fixed, draw);
    }
    plan.nodes.count = 3;
    plan.nodes.persistence = Persistence::Memory;
    plan.workload.lease = SimTime::millis(draw.between(80, 200));
    whole_leases(plan, Some(WorkloadKind::MutualExclusion), draw);
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::Half;
    workload.longer = draw.between(1, u64::from(plan.clients) - 1) as u16;
    let lease = workload.lease.as_nanos();
    workload.hold_min = SimTime::nanos(lease / 2);
    workload.hold_max = SimTime::nanos(4 * lease);
    workload.checks = 30;
    workload.poll_cap = SimTime::millis(draw.between(2, 10));
    workload.backoff_cap = SimTime::millis(draw.between(2, 10));
    plan.duration = plan.duration.max(DURATION);
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    // During a strike, no client may have a majority.
    plan.not_demanded.push(Property::Progress);
    let longest = 3 * lease;
    let ends = plan.duration.as_nanos() / 10 * 9;
    // Each strike begins the wait of the last stage anew, so most plans have none before its end.
    let mut at = match draw.chance(700_000) {
        true => RAISED.as_nanos() + draw.between(0, 4 * lease),
        false => draw.between(lease, 4 * lease),
    };
    // A client with longer leases that does not reach every node must not raise anything.
    let never_reached = draw.chance(250_000).then_some(2);
    if let Some(node) = never_reached {
        cut(
            plan,
            longer(plan).collect(),
            vec![node],
            SimTime::ZERO,
            plan.duration,
        );
    }
    while at < ends {
        strike(plan, at, never_reached, draw);
        // Of one longer lease and the watch of a node, at most one strike: losing a majority is another case.
        at += draw.between(3 * longest, 8 * longest);
    }
}

/// The clients with longer leases.
fn longer(plan: &Plan) -> std::ops::Range<u16> {
    plan.clients.saturating_sub(plan.workload.longer)..plan.clients
}

/// Restarts one node without its data. For one short lease or a little more, the clients with longer leases do not reach
/// it, and one of the others does not reach the node on which they keep their claim, or reaches the restarted one alone.
fn strike(plan: &mut Plan, at: u64, never_reached: Option<u16>, draw: &mut Draw) {
    let lease = plan.workload.lease.as_nanos();
    let free = never_reached.unwrap_or(draw.between(0, 2) as u16);
    let restarted = (free + draw.between(1, 2) as u16) % 3;
    let kept = 3 - free - restarted;
    let began = SimTime::nanos(at);
    let down = SimTime::micros(draw.between(50, 5_000));
    let crash = Fault::of_node(began, restarted, NodeFault::Crash);
    plan.faults.push(crash.lasting(down));
    let long_clients: Vec<u16> = longer(plan).collect();
    let lasts = SimTime::nanos(draw.between(lease, 2 * lease)).plus(down);
    if draw.chance(800_000) {
        cut(plan, long_clients.clone(), vec![restarted], began, lasts);
    }
    if never_reached.is_none() && draw.chance(500_000) {
        // So long that their claims on this node have ended.
        let before = SimTime::nanos((4 * lease).min(at));
        let lasts = before.plus(lasts).plus(lasts);
        cut(plan, long_clients, vec![free], began.minus(before), lasts);
    }
    let unaware = draw.between(0, u64::from(longer(plan).start) - 1) as u16;
    let before = SimTime::nanos(draw.between(0, lease).min(at));
    let from = began.minus(before);
    if draw.chance(800_000) {
        let lasts = lasts.plus(before);
        match draw.chance(500_000) {
            true => cut(plan, vec![unaware], vec![kept, free], from, lasts),
            false => cut(plan, vec![unaware], vec![kept], from, lasts.plus(lasts)),
        }
    }
    if draw.chance(500_000) {
        let crash = Fault::of_client(began, unaware, ClientFault::Crash);
        plan.faults.push(crash.lasting(down));
    }
}

fn cut(plan: &mut Plan, clients: Vec<u16>, nodes: Vec<u16>, at: SimTime, lasts: SimTime) {
    let what = FaultKind::Link {
        clients,
        nodes,
        direction: Direction::Both,
        fault: LinkFault::Cut,
    };
    plan.faults.push(Fault {
        when: at.into(),
        lasts,
        what,
    });
}
