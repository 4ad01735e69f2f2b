//! A node that is restarted without the last renewal that it confirmed, while the holder is cut off from it.
//!
//! After the restart, the node has the claim as it was before that renewal. Suppose that a contender observed the claim
//! in that state earlier, and believes that it has not changed since. It would replace the claim before the lease of
//! the renewal ends. On a single node, the errors of the node show the contender that its observation is void. If the
//! node inherits its marker, the identity of the new process does.

use super::Fixed;
use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{AssertedRestarts, LockKind, Persistence, Plan, Watchdog, WorkloadKind};

/// The time at which clients begin, except those that are paused until `LATER`.
const BEGINS: SimTime = SimTime::millis(1);

/// The time at which the other clients begin.
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
    work(plan, lease);
    plan.remedies.margin = Some(SimTime::millis(3 * lease));
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.network.min = SimTime::micros(draw.between(200, 500));
    plan.network.max = plan.network.min.plus(SimTime::micros(draw.between(0, 300)));
    // Clients must notice that a node is down before it is up again.
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
        // The first client holds the lock by the first and the second node, the others by the first and the third.
        plan.faults.push(from_the_beginning(plan, vec![0], 2));
        let others = (1..plan.clients).collect();
        plan.faults.push(from_the_beginning(plan, others, 1));
    }
}

/// Makes clients hold one lock for several leases, in milliseconds.
fn work(plan: &mut Plan, lease: u64) {
    let workload = &mut plan.workload;
    workload.kind = WorkloadKind::MutualExclusion;
    workload.names = 1;
    workload.lease = SimTime::millis(lease);
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::millis(lease * 3);
    workload.hold_max = SimTime::millis(lease * 5);
    workload.think_min = BEGINS;
    workload.think_max = BEGINS;
    workload.checks = 100;
    // A contender sends requests while the node is down, but rarely between the renewal and its loss.
    workload.poll_cap = SimTime::millis(15);
    workload.backoff_cap = SimTime::millis(5);
}

/// The state of the node after its restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ComesBack {
    /// The same node, as far as its clients can tell.
    Same,
    /// A new process that inherits the marker of the previous one.
    Inheriting,
    /// An empty node without claims and without a marker. Clients watch it.
    Empty,
}

/// Makes the first client hold the lock first. Its node confirms a renewal and loses it, and then the two are cut off
/// from each other for a lease. All writes that are lost belong to this hold.
fn lose(plan: &mut Plan, draw: &mut Draw, comes_back: ComesBack) {
    let lease = plan.workload.lease.as_nanos();
    for client in 1..plan.clients {
        let pause = Fault::of_client(SimTime::ZERO, client, ClientFault::Pause);
        plan.faults.push(pause.lasting(LATER));
    }
    // A hold is won one or two round trips after its client has begun, and is renewed every third of a lease after
    // that.
    let trips = 6 * plan.network.max.as_nanos();
    let renewed = BEGINS.as_nanos() + lease / 3 * draw.between(1, 5) + trips;
    let at = SimTime::nanos(renewed + draw.between(0, 1_500_000));
    let loses = SimTime::nanos(trips + 2_000_000);
    let brief = SimTime::micros(50);
    let (fault, away) = match comes_back {
        ComesBack::Same => (NodeFault::PowerLoss { loses }, SimTime::millis(40)),
        // The contenders notice that the node was down, or only that it is a different process.
        ComesBack::Inheriting => {
            plan.remedies.restarts = AssertedRestarts::KeepEverything;
            let away = match draw.chance(600_000) {
                true => brief,
                false => SimTime::millis(40),
            };
            (NodeFault::PowerLoss { loses }, away)
        }
        // The requests of the contenders may be older than the process that they reach, and older than the renewal:
        // one contender has already marked the process when the delayed request of another one arrives.
        ComesBack::Empty => {
            plan.nodes.persistence = Persistence::Memory;
            plan.workload.poll_cap = SimTime::millis(2);
            plan.workload.backoff_cap = SimTime::millis(2);
            let by = SimTime::millis(draw.between(17, 21));
            let late = LinkFault::Delay { min: by, max: by };
            let others: Vec<u16> = (2..plan.clients).collect();
            let late = link(others, 0, Direction::ToNode, late);
            plan.faults.push(late.lasting(at.plus(by)));
            // A crash loses the requests in flight on its connections; a flush does not.
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
