//! A node comes back without the last renewal that it confirmed, and its holder is cut off from it.
//!
//! The claim stands there as it stood before that renewal. A contender that has seen it so before, and took what it sees now
//! for the same, would replace it before the lease of the renewal is over. On one node it is told by the errors of the node
//! that what it has seen means nothing any more; where the node inherits its marker, by another process.

use super::Fixed;
use crate::plan::draw::Draw;
use crate::plan::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::plan::property::Property;
use crate::plan::time::SimTime;
use crate::plan::{AssertedRestarts, LockKind, Persistence, Plan, Watchdog, WorkloadKind};

/// Each client begins to ask at this time, but for those that are paused until later.
const BEGINS: SimTime = SimTime::millis(1);

/// The other clients begin then.
const LATER: SimTime = SimTime::millis(30);

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
    }
    let lease = draw.between(100, 300);
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = SimTime::millis(lease);
    workload.watchdog = Watchdog::On;
    workload.hold_least = SimTime::millis(lease * 3);
    workload.hold_most = SimTime::millis(lease * 5);
    workload.think_least = BEGINS;
    workload.think_most = BEGINS;
    workload.looks = 100;
    // A contender asks while the node is down, and mostly not between the renewal and its loss.
    workload.poll_cap = SimTime::millis(15);
    workload.backoff_cap = SimTime::millis(5);
    plan.remedies.margin = Some(SimTime::millis(3 * lease));
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.network.least = SimTime::micros(draw.between(200, 500));
    plan.network.most = plan
        .network
        .least
        .plus(SimTime::micros(draw.between(0, 300)));
    // A node that is down is noticed while it is.
    plan.network.call_timeout = SimTime::millis(10);
    plan.network.connect_timeout = SimTime::millis(10);
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    plan.not_demanded.push(Property::Progress);
    let comes_back = match plan.lock {
        LockKind::Redlock => match draw.between(0, 2) {
            0 => ComesBack::Empty,
            _ => ComesBack::Inheriting,
        },
        LockKind::Single | LockKind::Multi => ComesBack::Same,
    };
    if comes_back == ComesBack::Empty {
        plan.workload.lease = SimTime::millis(lease.min(140));
        if fixed.clients.is_none() {
            plan.clients = plan.clients.max(3);
        }
    }
    lose(plan, draw, comes_back);
    if plan.lock == LockKind::Redlock {
        // The first client holds by the first node and the second, the others by the first and the third.
        plan.faults.push(from_the_beginning(plan, vec![0], 2));
        let others = (1..plan.clients).collect();
        plan.faults.push(from_the_beginning(plan, others, 1));
    }
}

/// What a node is when it comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ComesBack {
    /// The one that it was, for all that its clients know.
    Same,
    /// A process that inherits the marker of the one before.
    Inheriting,
    /// Without claims and marker: it is watched.
    Empty,
}

/// The first client is the first to hold. Its node confirms a renewal and loses it, and then they do not hear of each other for
/// a lease. All that is written before that and lost is of this hold.
fn lose(plan: &mut Plan, draw: &mut Draw, comes_back: ComesBack) {
    let lease = plan.workload.lease.as_nanos();
    for client in 1..plan.clients {
        let pause = Fault::of_client(SimTime::ZERO, client, ClientFault::Pause);
        plan.faults.push(pause.lasting(LATER));
    }
    // A hold is won a round trip, or two, after its client has begun, and renewed each third of a lease from then on.
    let trips = 6 * plan.network.most.as_nanos();
    let renewed = BEGINS.as_nanos() + lease / 3 * draw.between(1, 5) + trips;
    let at = SimTime::nanos(renewed + draw.between(0, 1_500_000));
    let loses = SimTime::nanos(trips + 2_000_000);
    let brief = SimTime::micros(50);
    let (fault, away) = match comes_back {
        ComesBack::Same => (NodeFault::PowerLoss { loses }, SimTime::millis(40)),
        // The contenders hear that it was away, or only that it is another process.
        ComesBack::Inheriting => {
            plan.remedies.restarts = AssertedRestarts::KeepEverything;
            let away = match draw.chance(600_000) {
                true => brief,
                false => SimTime::millis(40),
            };
            (NodeFault::PowerLoss { loses }, away)
        }
        // What they ask may be older than the process that it comes to, and than the renewal: one of them has marked the process
        // when the request of another comes, which is late.
        ComesBack::Empty => {
            plan.nodes.persistence = Persistence::Memory;
            plan.workload.poll_cap = SimTime::millis(2);
            plan.workload.backoff_cap = SimTime::millis(2);
            let by = SimTime::millis(draw.between(17, 21));
            let late = LinkFault::Delay {
                least: by,
                most: by,
            };
            let others: Vec<u16> = (2..plan.clients).collect();
            let late = link(others, 0, Direction::ToNode, late);
            plan.faults.push(late.lasting(at.plus(by)));
            // What is under way on a connection is lost with the process at its end.
            match draw.chance(500_000) {
                true => (NodeFault::Crash, brief),
                false => (NodeFault::Flush, SimTime::ZERO),
            }
        }
    };
    plan.faults.push(Fault::of_node(at, 0, fault).lasting(away));
    let cut = Fault {
        when: at.into(),
        ..cut(vec![0], 0)
    };
    plan.faults.push(cut.lasting(plan.workload.lease));
}

fn from_the_beginning(plan: &Plan, clients: Vec<u16>, node: u16) -> Fault {
    cut(clients, node).lasting(plan.duration)
}

fn cut(clients: Vec<u16>, node: u16) -> Fault {
    link(clients, node, Direction::Both, LinkFault::Cut)
}

fn link(clients: Vec<u16>, node: u16, direction: Direction, fault: LinkFault) -> Fault {
    Fault {
        when: SimTime::ZERO.into(),
        lasts: SimTime::ZERO,
        what: FaultKind::Link {
            clients,
            nodes: vec![node],
            direction,
            fault,
        },
    }
}
