//! Holds that are renewed, with faults that need not end any of them.
//!
//! A client is cut off for less than half of a lease at a time. A renewal is sent every third of a lease, and again a
//! fifteenth of a lease later if it failed, so one succeeds before the lease ends. One of three nodes may lose the
//! claim. The holder re-acquires that node, so that the hold survives the later loss of another node.

use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::time::SimTime;
use crate::{LockKind, Persistence, Plan, Watchdog, WorkloadKind};

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_some_and(|kind| kind != WorkloadKind::MutualExclusion) {
        return;
    }
    let lease = draw.between(600, 1_500);
    set_times(plan, lease, draw);
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.duration = plan.duration.max(SimTime::millis(lease * 12));
    plan.holds_last = true;
    // Faults of initial clock readings and rates, which were drawn before, stay.
    let is_majority = plan.lock == LockKind::Redlock && plan.nodes.count == 3;
    match draw.between(0, 3) {
        0 => {}
        1 | 2 if is_majority => {
            lose_two_in_turn(plan, lease);
        }
        _ => {
            cut_again_and_again(plan, lease, draw);
        }
    }
    if draw.chance(200_000) {
        let node = draw.index(plan.nodes.count.into()) as u16;
        let at = SimTime::millis(draw.between(1, lease));
        plan.faults
            .push(Fault::of_node(at, node, NodeFault::ForgetScripts));
    }
}

/// Sets the times of the work and of the network.
fn set_times(plan: &mut Plan, lease: u64, draw: &mut Draw) {
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = SimTime::millis(lease);
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::millis(lease * 3);
    workload.hold_max = SimTime::millis(lease * 6);
    workload.think_min = SimTime::millis(1);
    workload.think_max = SimTime::millis(50);
    workload.checks = 40;
    workload.poll_cap = SimTime::millis(draw.between(20, 200));
    workload.backoff_cap = SimTime::millis(draw.between(10, 50));
    plan.network.min = SimTime::micros(draw.between(50, 500));
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 1_000)));
    // A call without an answer must end well before the next try.
    plan.network.call_timeout = SimTime::millis(lease / 30);
    plan.network.connect_timeout = SimTime::millis(lease / 30);
}

/// Cuts all clients off from two of three nodes, one after the other.
///
/// The claim expires on the first node while its client is cut off from it. Then the client re-acquires the node, and after
/// that the second node fails. The first hold must last long enough for all of that. There is time for four tries, because
/// a waiting client may have the first node briefly while it asks the others.
fn lose_two_in_turn(plan: &mut Plan, lease: u64) {
    plan.workload.hold_min = SimTime::millis(lease * 8);
    plan.workload.hold_max = SimTime::millis(lease * 10);
    let kept = plan.clock_margin().as_nanos() / 1_000_000;
    let expires = lease * 5 / 2 + kept;
    let first = cut(
        plan,
        vec![0],
        SimTime::millis(lease),
        SimTime::millis(expires),
    );
    let second = cut(
        plan,
        vec![1],
        SimTime::millis(lease * 6),
        SimTime::millis(lease * 6),
    );
    plan.faults.extend([first, second]);
}

/// Cuts all clients off from all nodes for less than half of a lease at a time.
fn cut_again_and_again(plan: &mut Plan, lease: u64, draw: &mut Draw) {
    let mut at = draw.between(lease / 2, lease * 2);
    while at < lease * 10 {
        let lasts = draw.between(lease / 3, lease * 45 / 100);
        let all = (0..plan.nodes.count).collect();
        let fault = cut(plan, all, SimTime::millis(at), SimTime::millis(lasts));
        plan.faults.push(fault);
        at += draw.between(lease * 3 / 2, lease * 3);
    }
}

/// Cuts all clients off from these nodes.
fn cut(plan: &Plan, nodes: Vec<u16>, at: SimTime, lasts: SimTime) -> Fault {
    let what = FaultKind::Link {
        clients: (0..plan.clients).collect(),
        nodes,
        direction: Direction::Both,
        fault: LinkFault::Cut,
    };
    Fault {
        when: at.into(),
        lasts,
        what,
    }
}
