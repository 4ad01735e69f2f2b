//! Shapes: plans on stores that reveal what a store of one's own must not do. Each has all its faults, and no others are drawn.

use crate::draw::Draw;
use crate::fault::{
    AfterMessage, Direction, Fault, FaultKind, InFlight, LinkFault, MessageKind, NodeFault,
    Towards, Trigger,
};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, NodeKind, Persistence, Plan, Watchdog};

/// Draws a shape, and gives it to a plan.
pub(super) fn give(plan: &mut Plan, draw: &mut Draw) {
    plan.workload.names = 1;
    plan.faults.clear();
    match (draw.between(0, 2), plan.lock) {
        (0, _) => wait_for_reports(plan, draw),
        (1, _) => restore(plan, draw),
        (_, LockKind::Redlock) if plan.nodes.count == 3 => succeed(plan, draw),
        (_, LockKind::Single) => lose_replies(plan, draw),
        (_, LockKind::Redlock | LockKind::Multi) => wait_for_reports(plan, draw),
    }
}

/// Waiters ask again too late to make up for a change that they are not told of. While one of them waits, no other client
/// thinks for so short a time that it acquires the lock and wakes the waiter by its release.
fn wait_for_reports(plan: &mut Plan, draw: &mut Draw) {
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(draw.between(4_000, 10_000));
    workload.hold_min = SimTime::millis(draw.between(200, 400));
    workload.hold_max = workload
        .hold_min
        .plus(SimTime::millis(draw.between(1, 100)));
    workload.think_min = SimTime::secs(2);
    workload.think_max = SimTime::secs(3);
    workload.poll_cap = SimTime::secs(20);
    workload.backoff_cap = SimTime::millis(draw.between(20, 200));
    plan.duration = plan.duration.max(SimTime::secs(10));
    // A lock is held for 500 ms at most, and split votes of a majority take most of the rest.
    plan.idle_within = Some(SimTime::secs(2));
}

/// A database comes back with an older state, under the same identity. It stays away until every lease that it lacks has
/// ended. Clients remember records of the time that was lost.
fn restore(plan: &mut Plan, draw: &mut Draw) {
    let nodes = &mut plan.nodes;
    nodes.kinds = vec![NodeKind::Database; nodes.count.into()];
    nodes.persistence = Persistence::EverySecond;
    nodes.replicas = 0;
    let workload = &mut plan.workload;
    let lease = draw.between(60, 160);
    workload.lease = SimTime::millis(lease);
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::millis(draw.between(1, lease / 2));
    workload.hold_max = SimTime::millis(draw.between(lease, 2 * lease));
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(draw.between(1, 2 * lease));
    workload.checks = draw.between(4, 12) as u16;
    plan.duration = plan.duration.max(SimTime::secs(4));
    let mut at = 200;
    for _ in 0..4 {
        at += draw.between(0, 200);
        let loses = SimTime::micros(draw.between(1_000, 1_000 * lease));
        let away = lease + lease / 10 + draw.between(5, 50);
        let node = draw.index(plan.nodes.count.into()) as u16;
        let lost = NodeFault::PowerLoss { loses };
        let fault = Fault::of_node(SimTime::millis(at), node, lost);
        plan.faults.push(fault.lasting(SimTime::millis(away)));
        at += away + 2 * lease;
    }
    // The counter of tokens goes back with the records.
    plan.not_demanded.push(Property::Fencing);
}

/// Databases of a majority fail over to replicas without their last writes, again and again, while a client cannot reach the
/// third one of three.
fn succeed(plan: &mut Plan, draw: &mut Draw) {
    plan.nodes.kinds = vec![NodeKind::Database; 3];
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.nodes.replicas = 1;
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(draw.between(150, 250));
    workload.hold_min = SimTime::millis(draw.between(10, 30));
    workload.hold_max = SimTime::millis(draw.between(40, 100));
    workload.poll_cap = SimTime::millis(100);
    workload.backoff_cap = SimTime::millis(100);
    let duration = plan.duration;
    plan.faults.push(Fault {
        when: SimTime::ZERO.into(),
        lasts: duration,
        what: FaultKind::Link {
            clients: vec![0],
            nodes: vec![2],
            direction: Direction::Both,
            fault: LinkFault::Cut,
        },
    });
    let by = SimTime::millis(draw.between(40, 100));
    for node in [0, 1] {
        let begins = SimTime::millis(100);
        let slow = NodeFault::SlowReplication { by, replica: None };
        let slow = Fault::of_node(begins, node, slow);
        plan.faults.push(slow.lasting(duration.minus(begins)));
        let first = SimTime::millis(300 + draw.between(0, 20));
        let failover = NodeFault::Failover {
            replica: 0,
            left_behind: Vec::new(),
        };
        let rejoins = SimTime::millis(50);
        for times in 0..4 {
            let at = first.plus(SimTime::millis(400 * times));
            let failover = Fault::of_node(at, node, failover.clone());
            plan.faults.push(failover.lasting(rejoins));
        }
    }
    plan.not_demanded.push(Property::Fencing);
}

/// The replies to some writes are lost. The claim of a client that takes its write for one that was not executed stays for
/// longer than the lock may be idle.
fn lose_replies(plan: &mut Plan, draw: &mut Draw) {
    let workload = &mut plan.workload;
    workload.lease = SimTime::secs(2);
    workload.hold_min = SimTime::millis(20);
    workload.hold_max = SimTime::millis(60);
    workload.poll_cap = SimTime::millis(100);
    workload.backoff_cap = SimTime::millis(100);
    plan.duration = plan.duration.max(SimTime::secs(4));
    plan.idle_within = Some(SimTime::millis(900));
    plan.network.call_timeout = SimTime::millis(300);
    plan.network.connect_timeout = SimTime::millis(150);
    for _ in 0..draw.between(1, 3) {
        let written = AfterMessage {
            since: SimTime::millis(100),
            message: MessageKind::Write,
            towards: Towards::Node,
            client: None,
            node: Some(0),
            nth: draw.between(1, 20) as u32,
            delay: SimTime::micros(draw.between(0, 2 * plan.network.max.as_nanos() / 1_000)),
        };
        plan.faults.push(Fault {
            when: Trigger::After(written),
            lasts: SimTime::ZERO,
            what: FaultKind::Link {
                clients: (0..plan.clients).collect(),
                nodes: vec![0],
                direction: Direction::Both,
                fault: LinkFault::Reset {
                    in_flight: InFlight::Executed,
                },
            },
        });
    }
}
