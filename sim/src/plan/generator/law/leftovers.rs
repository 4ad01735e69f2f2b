//! What calls leave behind: claims of given-up, failed and dropped ones.
//!
//! A lease outlasts the run, so a claim that is not released keeps everybody out. Faults are short, and calls end soon: the
//! product has the time to clean up.

use crate::plan::draw::Draw;
use crate::plan::fault::{ClientFault, Direction, Fault, FaultKind, InFlight, LinkFault};
use crate::plan::time::SimTime;
use crate::plan::{LockKind, Plan, WorkloadKind};

/// Releases are tried again after 200, 600, 1,200 and 2,000 ms. Faults last for 500 ms at most, and there are three of
/// them: one of the tries succeeds.
const IDLE: SimTime = SimTime::millis(4_000);

/// The last of these faults has begun by 2,000 ms, and is over then.
const QUIET: SimTime = SimTime::millis(2_500);

/// From then on a minority is gone.
const GONE: SimTime = SimTime::millis(2_600);

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        let kinds = [
            WorkloadKind::MutualExclusion,
            WorkloadKind::MutualExclusion,
            WorkloadKind::TryStorm,
            WorkloadKind::Crowd,
            WorkloadKind::ReadWrite,
            match plan.lock {
                LockKind::Multi => WorkloadKind::Crowd,
                _ => WorkloadKind::Reentrant,
            },
        ];
        let kind = kinds.get(draw.index(kinds.len())).copied();
        plan.workload.kind = kind.unwrap_or_default();
    }
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.lease = SimTime::millis(draw.between(10_000, 20_000));
    workload.hold_least = SimTime::millis(draw.between(5, 40));
    workload.hold_most = workload
        .hold_least
        .plus(SimTime::millis(draw.between(0, 40)));
    workload.think_least = SimTime::millis(draw.between(5, 50));
    workload.think_most = workload
        .think_least
        .plus(SimTime::millis(draw.between(1, 50)));
    workload.poll_cap = SimTime::millis(draw.between(100, 400));
    workload.backoff_cap = SimTime::millis(draw.between(20, 100));
    plan.remedies.margin = (plan.lock == LockKind::Redlock).then_some(SimTime::ZERO);
    plan.network.least = SimTime::micros(draw.between(50, 500));
    plan.network.most = plan
        .network
        .least
        .plus(SimTime::micros(draw.between(0, 2_000)));
    plan.network.call_timeout = SimTime::millis(draw.between(20, 150));
    plan.network.connect_timeout = SimTime::millis(draw.between(20, 80));
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
    // One that enters a hold again is not told that it may by fewer nodes than it takes to hold.
    let is_entered_once = matches!(
        plan.workload.kind,
        WorkloadKind::MutualExclusion | WorkloadKind::TryStorm | WorkloadKind::Crowd
    );
    let can_spare = plan.lock == LockKind::Redlock && 3 <= plan.nodes.count;
    if is_entered_once && can_spare && draw.chance(600_000) {
        lose_a_minority(plan, draw);
    }
    keep_in_order(plan);
}

/// Where messages overtake each other, none is late by more than a third of a call's time. A client that gives up a call releases on
/// the same connection: should the acquire come behind that release, its claim would stand for a lease, which no real connection does.
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
                fault: LinkFault::Delay { most, .. },
                ..
            } => *most = third.min(*most),
            FaultKind::Link {
                fault: LinkFault::HoldBack,
                ..
            } => *lasts = third.min(*lasts),
            _ => {}
        }
    }
}

/// A claim that a client has left on a minority of nodes keeps others out only where they need just these: so, when all else
/// is over, as many nodes as can be spared are gone for good.
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
        // One of those that stay is slow, and a release may come to it before the acquire that it is to undo.
        let late = (first + count - 1) % count;
        let most = SimTime::nanos(plan.network.call_timeout.as_nanos() / 3);
        let what = FaultKind::Link {
            clients: (0..plan.clients).collect(),
            nodes: vec![late],
            direction: Direction::ToNode,
            fault: LinkFault::Reorder { most },
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
    // It is over with the run.
    plan.healed_at = Some(QUIET);
}

/// One client and a node or all of them do not hear of each other for a moment.
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
                least: SimTime::ZERO,
                most: late,
            };
            (direction, SimTime::millis(500), fault)
        }
        3 => {
            // A call that has timed out is followed by a release on the same connection, which nothing overtakes there.
            let most = SimTime::nanos(plan.network.call_timeout.as_nanos() / 3);
            (direction, SimTime::millis(500), LinkFault::Reorder { most })
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
