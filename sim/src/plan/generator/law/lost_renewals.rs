//! A node comes back without the last renewal that it confirmed, and its holder is cut off from it.
//!
//! The claim stands there as it stood before that renewal. A contender that has seen it so before, and took what it sees now
//! for the same, would replace it before the lease of the renewal is over. On one node it is told by the errors of the node
//! that what it has seen means nothing any more; where the node inherits its marker, by another process.

use super::Fixed;
use crate::plan::draw::Draw;
use crate::plan::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::plan::property::Property;
use crate::plan::time::Span;
use crate::plan::{AssertedRestarts, LockKind, Persistence, Plan, Watchdog, WorkloadKind};

/// The other clients begin so much later.
const LATER: Span = Span::millis(30);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    let is_fit = match plan.lock {
        LockKind::Single => true,
        LockKind::Redlock => is_of_three,
        LockKind::Multi => false,
    };
    if !is_fit
        || fixed
            .work
            .is_some_and(|kind| kind != WorkloadKind::MutualExclusion)
    {
        return;
    }
    if plan.lock == LockKind::Redlock {
        plan.nodes.count = 3;
        plan.remedies.restarts = AssertedRestarts::KeepEverything;
    }
    let lease = draw.between(100, 300);
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = Span::millis(lease);
    workload.watchdog = Watchdog::On;
    workload.hold_least = Span::millis(lease * 3);
    workload.hold_most = Span::millis(lease * 5);
    workload.think_least = Span::ZERO;
    workload.think_most = Span::millis(10);
    workload.looks = 100;
    // A contender asks while the node is down, and soon after that.
    workload.poll_cap = Span::millis(2);
    workload.backoff_cap = Span::millis(2);
    plan.remedies.margin = Some(Span::millis(3 * lease));
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.network.least = Span::micros(draw.between(200, 500));
    plan.network.most = plan.network.least.plus(Span::micros(draw.between(0, 300)));
    // A node that is down is noticed while it is.
    plan.network.call_timeout = Span::millis(10);
    plan.network.connect_timeout = Span::millis(10);
    plan.healed_at = Some(plan.duration);
    plan.not_demanded.push(Property::Progress);
    lose(plan, draw);
    if plan.lock == LockKind::Redlock {
        // The first client holds by the first node and the second, the others by the first and the third.
        plan.faults.push(from_the_beginning(plan, vec![0], 2));
        let others = (1..plan.clients).collect();
        plan.faults.push(from_the_beginning(plan, others, 1));
    }
}

/// The first client is the first to hold. Its node confirms a renewal and loses it, and then they do not hear of each other for
/// a lease. All that is written before that and lost is of this hold.
fn lose(plan: &mut Plan, draw: &mut Draw) {
    let lease = plan.workload.lease.as_nanos();
    for client in 1..plan.clients {
        let pause = Fault::of_client(Span::ZERO, client, ClientFault::Pause);
        plan.faults.push(pause.lasting(LATER));
    }
    let at = Span::nanos(draw.between(lease / 2, 2 * lease));
    let loses = Span::nanos(draw.between(lease / 50, lease / 6));
    let away = match plan.lock {
        // The process that comes back is another one, and says so.
        LockKind::Redlock if draw.chance(600_000) => Span::micros(50),
        _ => Span::millis(draw.between(25, 40)),
    };
    let lost = Fault::of_node(at, 0, NodeFault::PowerLoss { loses });
    plan.faults.push(lost.lasting(away));
    plan.faults.push(Fault {
        when: at.into(),
        lasts: plan.workload.lease,
        ..cut(vec![0], 0)
    });
}

fn from_the_beginning(plan: &Plan, clients: Vec<u16>, node: u16) -> Fault {
    cut(clients, node).lasting(plan.duration)
}

fn cut(clients: Vec<u16>, node: u16) -> Fault {
    Fault {
        when: Span::ZERO.into(),
        lasts: Span::ZERO,
        what: FaultKind::Link {
            clients,
            nodes: vec![node],
            direction: Direction::Both,
            fault: LinkFault::Cut,
        },
    }
}
