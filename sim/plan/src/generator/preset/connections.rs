//! Holds that are renewed for several leases, while the connections of their client are slow or cut, one after another.
//!
//! The end of a renewal's term matters only for the last renewal: its reply is late, and then the client is cut off.

use super::margin;
use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault};
use crate::time::SimTime;
use crate::{LockKind, Plan, Watchdog, WorkloadKind};

/// The largest delay in milliseconds. With short leases, a member has 25 ms to answer, and later replies are ignored.
const LATE: u64 = 23;

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = work(plan.lock, draw);
    }
    let lease = draw.between(60, 200);
    set_times(plan, lease, draw);
    margin(plan, draw);
    if draw.chance(250_000) {
        overtaken(plan, draw);
    }
    for client in 0..plan.clients {
        disturb(plan, client, lease, draw);
    }
}

fn work(lock: LockKind, draw: &mut Draw) -> WorkloadKind {
    let kinds = [
        WorkloadKind::MutualExclusion,
        WorkloadKind::MutualExclusion,
        WorkloadKind::LongWork,
        WorkloadKind::Extending,
        match lock {
            LockKind::Single => WorkloadKind::FencedWrites,
            LockKind::Multi | LockKind::Redlock => WorkloadKind::Overlapping,
        },
        match lock {
            LockKind::Multi => WorkloadKind::MutualExclusion,
            LockKind::Single | LockKind::Redlock => WorkloadKind::Reentrant,
        },
    ];
    let kind = kinds.get(draw.index(kinds.len())).copied();
    kind.unwrap_or_default()
}

/// Sets the times of the work and of the network.
fn set_times(plan: &mut Plan, lease: u64, draw: &mut Draw) {
    let workload = &mut plan.workload;
    workload.names = match workload.kind {
        WorkloadKind::Overlapping => 3,
        _ => 1,
    };
    workload.lease = SimTime::millis(lease);
    workload.watchdog = match draw.chance(800_000) {
        true => Watchdog::On,
        false => Watchdog::Off,
    };
    if draw.chance(300_000) {
        // At least two leases, because an extension of a hold may request that much.
        workload.max_hold = Some(SimTime::millis(lease * 5 / 2));
    }
    workload.hold_min = SimTime::millis(lease / 2);
    workload.hold_max = SimTime::millis(lease * draw.between(1, 5));
    if workload.kind == WorkloadKind::Extending && draw.chance(500_000) {
        // Without a watchdog, only an extension lengthens the hold, and it is sent when the lease has just ended.
        workload.watchdog = Watchdog::Off;
        workload.max_hold = None;
        workload.hold_min = SimTime::millis(lease * 36 / 10);
        workload.hold_max = SimTime::millis(lease * 42 / 10);
    }
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::millis(draw.between(1, 30));
    workload.checks = draw.between(20, 200) as u16;
    workload.poll_cap = SimTime::millis(draw.between(3, 30));
    workload.backoff_cap = SimTime::millis(draw.between(2, 15));
    plan.network.min = SimTime::micros(draw.between(50, 500));
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 1_500)));
    plan.network.call_timeout = SimTime::millis(draw.between(lease / 4, lease * 2));
    plan.network.connect_timeout = SimTime::millis(draw.between(lease / 4, lease));
}

/// Makes the connections of a client slow, or cuts them, one after another.
fn disturb(plan: &mut Plan, client: u16, lease: u64, draw: &mut Draw) {
    let worst = draw.index(usize::from(plan.nodes.count)) as u16;
    if plan.lock == LockKind::Redlock && 2 < plan.nodes.count && draw.chance(400_000) {
        asked_again(plan, draw, client, worst);
        return;
    }
    if draw.chance(600_000) {
        let fault = LinkFault::Delay {
            min: SimTime::millis(2),
            max: SimTime::millis(draw.between(5, LATE)),
        };
        let late = link(client, vec![worst], Direction::ToClient, fault);
        plan.faults.push(late.lasting(plan.duration));
    }
    for _ in 0..draw.between(1, 5) {
        let fault = cut(plan, draw, client, worst);
        plan.faults.push(fault);
    }
    if draw.chance(300_000) {
        let at = SimTime::micros(draw.between(0, plan.duration.as_nanos() / 1_000));
        let lasts = SimTime::millis(draw.between(lease / 3, lease * 3 / 2));
        let stop = match draw.between(0, 1) {
            0 => ClientFault::Pause,
            _ => ClientFault::StopInside {
                nth: draw.between(1, 30) as u32,
            },
        };
        plan.faults
            .push(Fault::of_client(at, client, stop).lasting(lasts));
    }
}

/// Duplicates or reorders requests by a large part of a lease, while waiters do not try again in between.
fn overtaken(plan: &mut Plan, draw: &mut Draw) {
    let lease = plan.workload.lease.as_nanos();
    plan.workload.poll_cap = SimTime::nanos(draw.between(lease / 2, 2 * lease));
    plan.remedies.margin = match plan.lock {
        LockKind::Redlock => None,
        LockKind::Single | LockKind::Multi => Some(SimTime::nanos(lease)),
    };
    let max = SimTime::nanos(draw.between(lease / 3, lease * 3 / 2));
    let fault = match draw.between(0, 2) {
        0 => LinkFault::Reorder { max },
        _ => LinkFault::Duplicate {
            of_million: draw.between(100_000, 1_000_000) as u32,
            max,
        },
    };
    let what = FaultKind::Link {
        clients: (0..plan.clients).collect(),
        nodes: (0..plan.nodes.count).collect(),
        direction: Direction::ToNode,
        fault,
    };
    let (at, lasts) = (SimTime::ZERO, plan.duration);
    plan.faults.push(Fault {
        when: at.into(),
        lasts,
        what,
    });
}

/// Makes the claim expire on a node with late answers, so that the client sends it an acquire again. Before the answer
/// arrives, the client is cut off from so many other nodes that the vote of this node decides. Then it is cut off from
/// all nodes.
fn asked_again(plan: &mut Plan, draw: &mut Draw, client: u16, worst: u16) {
    let lease = plan.workload.lease.as_nanos();
    if draw.chance(700_000) {
        // A claim that outlasts its lease would hide a term that is too long.
        plan.remedies.margin = Some(SimTime::ZERO);
    }
    let stays = lease + plan.clock_margin().as_nanos();
    let others: Vec<u16> = (0..plan.nodes.count)
        .filter(|node| *node != worst)
        .collect();
    let spare = usize::from(plan.nodes.count) / 2;
    let (gone, kept) = others.split_at(spare);
    let late = LinkFault::Delay {
        min: SimTime::millis(8),
        max: SimTime::millis(draw.between(12, LATE)),
    };
    plan.network.call_timeout = SimTime::nanos(lease);
    let expires = draw.between(lease, 3 * lease);
    let again = expires + stays / 10 * 11;
    let last = again + draw.between(lease / 4, lease);
    let late = link(client, vec![worst], Direction::ToClient, late).lasting(plan.duration);
    plan.faults.push(late);
    let cuts = [
        (expires, again, vec![worst]),
        (again, last + 2 * lease, gone.to_vec()),
        (last, last + 2 * lease, kept.to_vec()),
        (last, last + 2 * lease, vec![worst]),
    ];
    for (from, to, nodes) in cuts {
        plan.faults.push(Fault {
            when: SimTime::nanos(from).into(),
            lasts: SimTime::nanos(to - from),
            ..link(client, nodes, Direction::Both, LinkFault::Cut)
        });
    }
}

/// Draws a cut of about a lease between a client and one node, all other nodes, or all nodes.
fn cut(plan: &Plan, draw: &mut Draw, client: u16, worst: u16) -> Fault {
    let all = 0..plan.nodes.count;
    let nodes = match draw.between(0, 3) {
        0 => vec![worst],
        1 => all.filter(|node| *node != worst).collect(),
        2 => vec![draw.index(usize::from(plan.nodes.count)) as u16],
        _ => all.collect(),
    };
    let nodes = match nodes.is_empty() {
        true => vec![worst],
        false => nodes,
    };
    let direction = match draw.between(0, 3) {
        0 => Direction::ToNode,
        1 => Direction::ToClient,
        _ => Direction::Both,
    };
    let fault = match draw.between(0, 4) {
        0 => LinkFault::HoldBack,
        1 => LinkFault::Reorder {
            max: SimTime::nanos(plan.workload.lease.as_nanos() / 2),
        },
        _ => LinkFault::Cut,
    };
    let last = plan.duration.as_nanos() / 10 * 8;
    let lease = plan.workload.lease.as_nanos();
    Fault {
        when: SimTime::nanos(draw.between(0, last)).into(),
        lasts: SimTime::nanos(draw.between(lease / 3, lease * 5 / 2)),
        ..link(client, nodes, direction, fault)
    }
}

fn link(client: u16, nodes: Vec<u16>, direction: Direction, fault: LinkFault) -> Fault {
    Fault {
        when: SimTime::ZERO.into(),
        lasts: SimTime::ZERO,
        what: FaultKind::Link {
            clients: vec![client],
            nodes,
            direction,
            fault,
        },
    }
}
