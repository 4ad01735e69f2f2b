//! Waiters that try again too late to make up for a lost wake-up.
//!
//! Clients think for longer than a lock may stay idle. So if a waiter is not woken, no other client acquires the lock
//! in time and wakes the waiter by its release, and the lock stays idle for too long.

use crate::draw::Draw;
use crate::fault::{
    AfterMessage, ClientFault, Direction, Fault, FaultKind, InFlight, LinkFault, MessageKind,
    Towards, Trigger,
};
use crate::time::SimTime;
use crate::{LockKind, Plan, WorkloadKind};

/// The longest time for which a lock may go without being acquired while a client waits and nothing goes wrong. A hold
/// takes up to 500 ms of it; the pauses after split votes take most of it.
const IDLE: SimTime = SimTime::secs(2);

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = match (draw.between(0, 3), plan.lock) {
            (0, _) => WorkloadKind::ReadWrite,
            (2, _) => WorkloadKind::CompetingTasks,
            (1, LockKind::Single | LockKind::Multi) => WorkloadKind::Fair,
            _ => WorkloadKind::MutualExclusion,
        };
    }
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.lease = SimTime::millis(draw.between(4_000, 10_000));
    // A release coincides with the subscription of a waiter only if holds are as short as a subscription takes.
    workload.hold_min = match draw.between(0, 1) {
        0 => SimTime::millis(draw.between(1, 10)),
        _ => SimTime::millis(draw.between(200, 400)),
    };
    workload.hold_max = workload
        .hold_min
        .plus(SimTime::millis(draw.between(1, 100)));
    workload.poll_cap = SimTime::secs(20);
    workload.backoff_cap = SimTime::millis(draw.between(20, 200));
    match draw.between(0, 2) {
        0 => {
            workload.think_min = SimTime::millis(1);
            workload.think_max = SimTime::millis(60);
        }
        _ => {
            workload.think_min = SimTime::millis(2_000);
            workload.think_max = SimTime::millis(3_000);
        }
    }
    let is_brief = matches!(
        workload.kind,
        WorkloadKind::MutualExclusion
            | WorkloadKind::CompetingTasks
            | WorkloadKind::Fair
            | WorkloadKind::ReadWrite
    );
    if !is_brief {
        return;
    }
    plan.duration = plan.duration.max(SimTime::secs(10));
    plan.idle_within = Some(IDLE);
    if plan.workload.kind != WorkloadKind::MutualExclusion {
        return;
    }
    match draw.between(0, 9) {
        0..=3 => crash(plan, draw),
        4..=6 => lose_subscriptions(plan, draw),
        _ => {}
    }
}

/// Resets the connections of all other clients when the first client releases. These clients receive nothing that the
/// nodes publish, and are notified only when they have subscribed again.
fn lose_subscriptions(plan: &mut Plan, draw: &mut Draw) {
    let what = FaultKind::Link {
        clients: (1..plan.clients).collect(),
        nodes: (0..plan.nodes.count).collect(),
        direction: Direction::Both,
        fault: LinkFault::Reset {
            in_flight: InFlight::Executed,
        },
    };
    for _ in 0..draw.between(1, 4) {
        let released = AfterMessage {
            since: SimTime::ZERO,
            message: MessageKind::Release,
            towards: Towards::Node,
            client: Some(0.into()),
            node: Some(0),
            nth: draw.between(1, 6) as u32,
            delay: SimTime::micros(draw.between(0, 500)),
        };
        plan.faults.push(Fault {
            when: Trigger::After(released),
            lasts: SimTime::ZERO,
            what: what.clone(),
        });
    }
}

/// Crashes a client while it holds the lock, so that no wake-up announces that its claim expires.
fn crash(plan: &mut Plan, draw: &mut Draw) {
    let lease = SimTime::millis(draw.between(500, 1_000));
    plan.workload.lease = lease;
    plan.workload.hold_min = SimTime::millis(200);
    plan.workload.hold_max = SimTime::millis(800);
    let mut stays = lease.plus(plan.clock_margin());
    if plan.has_remedies() && draw.chance(600_000) {
        // The claim is replaced after it was observed for a lease, long before it expires.
        plan.remedies.margin = Some(SimTime::secs(20));
        stays = lease.plus(lease);
    }
    plan.idle_within = Some(IDLE.plus(stays));
    // A client thinks for 3 s, and may have to wait for a claim to end before it is granted anything.
    plan.progress_within = Some(IDLE.plus(stays).plus(SimTime::secs(4)));
    let client = draw.index(usize::from(plan.clients)) as u16;
    for _ in 0..draw.between(1, 4) {
        let at = SimTime::millis(draw.between(1, 6_000));
        let fault = Fault::of_client(at, client, ClientFault::Crash);
        plan.faults.push(fault.lasting(SimTime::millis(4_000)));
    }
}
