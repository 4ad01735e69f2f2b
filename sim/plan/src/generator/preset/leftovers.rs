//! Claims that calls leave behind when they are given up, fail or are dropped.
//!
//! A lease outlasts the run, so a claim that is not released excludes all clients until the end. Faults are short and
//! calls end soon, so the product has enough time to clean up.

use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, InFlight, LinkFault};
use crate::time::SimTime;
use crate::{LockKind, Plan, WorkloadKind};

/// The longest time for which the lock may go without being acquired. Releases are retried after 200, 600, 1,200 and
/// 2,000 ms. There are at most three faults of at most 500 ms each, so one of the tries succeeds.
const IDLE: SimTime = SimTime::millis(4_000);

/// The time at which all faults have ended: the last one begins at 2,000 ms at the latest and lasts at most 500 ms.
const QUIET: SimTime = SimTime::millis(2_500);

/// The time at which a minority of the nodes fails for good.
const GONE: SimTime = SimTime::millis(2_600);

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = work(plan.lock, draw);
    }
    set_times(plan, draw);
    let is_brief = !matches!(
        plan.workload.kind,
        WorkloadKind::Leading | WorkloadKind::LongWork | WorkloadKind::Extending
    );
    if is_brief {
        plan.duration = plan.duration.max(SimTime::secs(7));
        plan.idle_within = Some(IDLE);
        plan.progress_within = Some(IDLE);
    }
    for _ in 0..draw.between(1, 8) {
        let client = draw.index(usize::from(plan.clients)) as u16;
        let nth = draw.between(1, 20) as u32;
        let at = SimTime::millis(draw.between(1, 2_000));
        plan.faults
            .push(Fault::of_client(at, client, ClientFault::Cancel { nth }));
    }
    for _ in 0..draw.between(1, 3) {
        let fault = short(plan, draw);
        plan.faults.push(fault);
    }
    // Only for workloads that enter each hold once. A re-entry needs as many nodes as the hold itself, and those may
    // be gone.
    let is_entered_once = matches!(
        plan.workload.kind,
        WorkloadKind::MutualExclusion | WorkloadKind::TryStorm | WorkloadKind::CompetingTasks
    );
    let can_spare = plan.lock == LockKind::Redlock && 3 <= plan.nodes.count;
    if is_entered_once && can_spare && draw.chance(600_000) {
        lose_a_minority(plan, draw);
    }
    keep_in_order(plan);
}

fn work(lock: LockKind, draw: &mut Draw) -> WorkloadKind {
    let kinds = [
        WorkloadKind::MutualExclusion,
        // A place in a queue is left behind like a claim.
        match lock {
            LockKind::Redlock => WorkloadKind::MutualExclusion,
            _ => WorkloadKind::Fair,
        },
        WorkloadKind::TryStorm,
        WorkloadKind::CompetingTasks,
        WorkloadKind::ReadWrite,
        match lock {
            LockKind::Multi => WorkloadKind::CompetingTasks,
            _ => WorkloadKind::Reentrant,
        },
    ];
    let kind = kinds.get(draw.index(kinds.len())).copied();
    kind.unwrap_or_default()
}

/// Sets the times of the work and of the network.
fn set_times(plan: &mut Plan, draw: &mut Draw) {
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.lease = SimTime::millis(draw.between(10_000, 20_000));
    workload.hold_min = SimTime::millis(draw.between(5, 40));
    workload.hold_max = workload.hold_min.plus(SimTime::millis(draw.between(0, 40)));
    workload.think_min = SimTime::millis(draw.between(5, 50));
    workload.think_max = workload
        .think_min
        .plus(SimTime::millis(draw.between(1, 50)));
    workload.poll_cap = SimTime::millis(draw.between(100, 400));
    workload.backoff_cap = SimTime::millis(draw.between(20, 100));
    plan.remedies.margin = (plan.lock == LockKind::Redlock).then_some(SimTime::ZERO);
    plan.network.min = SimTime::micros(draw.between(50, 500));
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 2_000)));
    plan.network.call_timeout = SimTime::millis(draw.between(20, 150));
    plan.network.connect_timeout = SimTime::millis(draw.between(20, 80));
}

/// Limits the delay of messages that overtake each other to a third of the call time-out.
///
/// A client that gives up a call sends the release on the same connection. If the acquire arrived after that release,
/// its claim would stay for a lease. A real connection never reorders the two.
fn keep_in_order(plan: &mut Plan) {
    let overtakes = |fault: &Fault| {
        let what = &fault.what;
        matches!(what, FaultKind::Link { fault, .. } if matches!(fault, LinkFault::Reorder { .. }))
    };
    if !plan.faults.iter().any(overtakes) {
        return;
    }
    let third = SimTime::nanos(plan.network.call_timeout.as_nanos() / 3);
    for Fault { lasts, what, .. } in &mut plan.faults {
        match what {
            FaultKind::Link {
                fault: LinkFault::Delay { max, .. },
                ..
            } => *max = third.min(*max),
            FaultKind::Link {
                fault: LinkFault::HoldBack,
                ..
            } => *lasts = third.min(*lasts),
            _ => {}
        }
    }
}

/// Cuts off as many nodes as the lock can spare, for good, after all other faults. A claim that was left on a minority
/// of nodes excludes other clients only if they need exactly these nodes.
fn lose_a_minority(plan: &mut Plan, draw: &mut Draw) {
    let count = plan.nodes.count;
    let first = draw.index(usize::from(count)) as u16;
    let gone = (0..count.saturating_sub(1) / 2).map(|step| (first + step) % count);
    let what = FaultKind::Link {
        clients: (0..plan.clients).collect(),
        nodes: gone.collect(),
        direction: Direction::Both,
        fault: LinkFault::Cut,
    };
    if draw.chance(600_000) {
        // One of the remaining nodes is slow, so that a release may reach it before the acquire that it undoes.
        let late = (first + count - 1) % count;
        let max = SimTime::nanos(plan.network.call_timeout.as_nanos() / 3);
        let what = FaultKind::Link {
            clients: (0..plan.clients).collect(),
            nodes: vec![late],
            direction: Direction::ToNode,
            fault: LinkFault::Reorder { max },
        };
        let from = SimTime::millis(draw.between(1, 1_000));
        plan.faults.push(Fault {
            when: from.into(),
            lasts: SimTime::millis(1_000),
            what,
        });
    }
    plan.faults.push(Fault {
        when: GONE.into(),
        lasts: plan.duration.minus(GONE),
        what,
    });
    // The cut lasts until the end of the run, so the bound on progress counts from when the other faults have ended.
    plan.healed_at = Some(QUIET);
}

/// Draws a short fault between one client and either one node or all nodes.
fn short(plan: &Plan, draw: &mut Draw) -> Fault {
    let all = 0..plan.nodes.count;
    let node = draw.index(usize::from(plan.nodes.count)) as u16;
    let nodes = match draw.chance(500_000) {
        true => all.collect(),
        false => vec![node],
    };
    let direction = match draw.between(0, 2) {
        0 => Direction::Both,
        1 => Direction::ToNode,
        _ => Direction::ToClient,
    };
    let late = SimTime::millis(draw.between(10, 150));
    let (direction, lasts, fault) = match draw.between(0, 5) {
        0 => (direction, late, LinkFault::Cut),
        1 => (direction, late, LinkFault::HoldBack),
        2 => {
            let fault = LinkFault::Delay {
                min: SimTime::ZERO,
                max: late,
            };
            (direction, SimTime::millis(500), fault)
        }
        3 => {
            // After the call time-out, the client sends a release on the same connection, where nothing overtakes it.
            let max = SimTime::nanos(plan.network.call_timeout.as_nanos() / 3);
            (direction, SimTime::millis(500), LinkFault::Reorder { max })
        }
        4 => {
            let in_flight = InFlight::Lost;
            (
                Direction::Both,
                SimTime::ZERO,
                LinkFault::Reset { in_flight },
            )
        }
        _ => {
            let in_flight = InFlight::Executed;
            (
                Direction::Both,
                SimTime::ZERO,
                LinkFault::Reset { in_flight },
            )
        }
    };
    let what = FaultKind::Link {
        clients: vec![draw.index(usize::from(plan.clients)) as u16],
        nodes,
        direction,
        fault,
    };
    let at = SimTime::millis(draw.between(1, 2_000));
    Fault {
        when: at.into(),
        lasts,
        what,
    }
}
