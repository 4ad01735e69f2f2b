//! Many clients that want one lock, while nothing goes wrong: it is acquired soon after each release.
//!
//! Where few compete, a random pause or a fixed order of the nodes is enough to tell them apart, and the other is missed by
//! none. Many need both; and where all latencies are alike, nothing but the pause keeps two of them from meeting again.

use super::Fixed;
use crate::plan::draw::Draw;
use crate::plan::fault::{Direction, Fault, FaultKind, LinkFault};
use crate::plan::time::SimTime;
use crate::plan::{LockKind, Plan, Watchdog, WorkloadKind};

/// A round that asks the first node before the rest, a release and a few pauses of competitors.
const FREE: SimTime = SimTime::millis(600);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let kinds = [WorkloadKind::MutualExclusion, WorkloadKind::Greedy];
    let Some(kind) = fixed.work.or(kinds.get(draw.index(2)).copied()) else {
        return;
    };
    if !kinds.contains(&kind) {
        return;
    }
    if fixed.clients.is_none() {
        plan.clients = draw.between(6, 20) as u16;
    }
    let workload = &mut plan.workload;
    workload.kind = kind;
    workload.names = 1;
    workload.watchdog = Watchdog::On;
    workload.lease = SimTime::secs(10);
    workload.hold_least = SimTime::millis(draw.between(1, 10));
    workload.hold_most = workload.hold_least;
    workload.think_least = SimTime::ZERO;
    workload.think_most = SimTime::millis(draw.between(1, 20));
    workload.poll_cap = SimTime::secs(5);
    workload.backoff_cap = SimTime::secs(1);
    plan.network.least = SimTime::micros(draw.between(500, 2_000));
    plan.network.most = plan.network.least;
    plan.free_within = Some(FREE);
    match draw.between(0, 2) {
        0 => each_near_another_node(plan, draw),
        _ => {
            plan.network.most = plan
                .network
                .least
                .plus(SimTime::micros(draw.between(0, 4_000)))
        }
    }
}

/// Each client is as far from the nodes as every other, and nearest to another of them: where two begin at once, each comes
/// first to a node of its own.
fn each_near_another_node(plan: &mut Plan, draw: &mut Draw) {
    let further = SimTime::micros(draw.between(500, 3_000));
    // Of a majority of three, both that are left have to grant.
    let is_first_gone = plan.lock == LockKind::Redlock && plan.nodes.count == 3;
    let first = u16::from(is_first_gone && draw.chance(500_000));
    for client in 0..plan.clients {
        let near = first + client % plan.nodes.count.saturating_sub(first).max(1);
        let nodes: Vec<u16> = (0..plan.nodes.count).filter(|node| *node != near).collect();
        if nodes.is_empty() {
            continue;
        }
        let fault = LinkFault::Delay {
            least: further,
            most: further,
        };
        plan.faults.push(lasting(plan, vec![client], nodes, fault));
    }
    if first == 1 {
        // No order of two nodes lets one of many pass: only their pauses do, and these grow up to a second.
        plan.free_within = None;
        let all = (0..plan.clients).collect();
        plan.faults
            .push(lasting(plan, all, vec![0], LinkFault::Cut));
    }
}

/// From the beginning to the end.
fn lasting(plan: &Plan, clients: Vec<u16>, nodes: Vec<u16>, fault: LinkFault) -> Fault {
    Fault {
        when: SimTime::ZERO.into(),
        lasts: plan.duration,
        what: FaultKind::Link {
            clients,
            nodes,
            direction: Direction::Both,
            fault,
        },
    }
}
