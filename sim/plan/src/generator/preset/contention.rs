//! Many clients that compete for one lock without faults. The lock must be acquired soon after each release.
//!
//! A fixed order of the nodes and random pauses separate competitors. Without the order, a plan of this preset leaves the
//! lock free for too long. With the order, it also passes if the pauses are not random.

use super::Fixed;
use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault};
use crate::time::SimTime;
use crate::{LockKind, Plan, Watchdog, WorkloadKind};

/// The bound on how long the lock stays free: time for a round that asks the first node before the others, a release,
/// and a few pauses of competitors.
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
    workload.hold_min = SimTime::millis(draw.between(1, 10));
    workload.hold_max = workload.hold_min;
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(draw.between(1, 20));
    workload.poll_cap = SimTime::secs(5);
    workload.backoff_cap = SimTime::secs(1);
    plan.network.min = SimTime::micros(draw.between(500, 2_000));
    plan.network.max = plan.network.min;
    plan.free_within = Some(FREE);
    match draw.between(0, 2) {
        0 => each_near_another_node(plan, draw),
        _ => {
            plan.network.max = plan
                .network
                .min
                .plus(SimTime::micros(draw.between(0, 4_000)))
        }
    }
}

/// Puts each client near one node, a different one for consecutive clients, and equally far from the other nodes. If
/// two clients begin at the same time, each reaches its own node first.
fn each_near_another_node(plan: &mut Plan, draw: &mut Draw) {
    let further = SimTime::micros(draw.between(500, 3_000));
    // With three nodes and the first one cut off, both of the other nodes must grant.
    let is_first_gone = plan.lock == LockKind::Redlock && plan.nodes.count == 3;
    let first = u16::from(is_first_gone && draw.chance(500_000));
    for client in 0..plan.clients {
        let near = first + client % plan.nodes.count.saturating_sub(first).max(1);
        let nodes: Vec<u16> = (0..plan.nodes.count).filter(|node| *node != near).collect();
        if nodes.is_empty() {
            continue;
        }
        let fault = LinkFault::Delay {
            min: further,
            max: further,
        };
        plan.faults.push(lasting(plan, vec![client], nodes, fault));
    }
    if first == 1 {
        // With two nodes left, asking in order does not single out one of many clients. Only their pauses do, and
        // these grow up to a second.
        plan.free_within = None;
        let all = (0..plan.clients).collect();
        plan.faults
            .push(lasting(plan, all, vec![0], LinkFault::Cut));
    }
}

/// Returns a fault of links that lasts for the whole run.
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
