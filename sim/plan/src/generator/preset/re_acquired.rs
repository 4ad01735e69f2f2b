//! A holder that re-acquires a node that has lost the claim of a competitor, while the round of the competitor
//! continues.
//!
//! A holds the lock by the second and the third node, and is then cut off from the third. The first node grants B,
//! whose request to the third is delayed. The first node is restarted without B's claim and grants A. When A's claim
//! on the third node expires, that node grants B, too. If the grant of the first node counted for A, both would have
//! a majority.

use super::{Fixed, sides, two_clients};
use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::time::SimTime;
use crate::{Persistence, Plan, Watchdog};

/// Long enough for B's delay. A member has a twentieth of a round to answer, so B's request may be nearly 200 ms late.
const LEASE: SimTime = SimTime::secs(4);

/// The time at which A begins.
const BEGINS: SimTime = SimTime::millis(1);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    if !two_clients(plan, fixed, LEASE, BEGINS) {
        return sides::apply(plan, fixed, draw);
    }
    plan.nodes.persistence = Persistence::Memory;
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::secs(6);
    workload.hold_max = SimTime::secs(6);
    workload.checks = 300;
    workload.poll_cap = SimTime::millis(5);
    workload.backoff_cap = SimTime::millis(5);
    plan.network.min = SimTime::micros(draw.between(100, 300));
    plan.network.max = plan.network.min;
    // After a call of A without a reply, the next one follows a fifteenth of a lease later. When the node is
    // restarted, one of these calls is in flight, or none. A call of B lasts for a round.
    let call = SimTime::millis(draw.between(220, 500));
    plan.network.call_timeout = call;
    plan.network.connect_timeout = call;
    let (a, b) = (0, 1);
    let end = plan.duration;
    // The claim of A on the third node expires a lease after it was made.
    let over = BEGINS.plus(LEASE).plus(plan.network.max);
    let restarted = over.minus(SimTime::millis(draw.between(80, 120)));
    let asks = restarted.minus(SimTime::millis(draw.between(10, 60)));
    let silent = restarted.minus(call).plus(SimTime::millis(10));
    let heard = restarted.plus(SimTime::millis(1));
    let late = over.plus(SimTime::millis(3));
    let soon = SimTime::millis(30);
    plan.faults.extend([
        link(a, 0, SimTime::ZERO, silent, LinkFault::Cut),
        link(a, 0, silent, heard, LinkFault::HoldBack),
        link(a, 2, soon, end, LinkFault::Cut),
        Fault::of_client(SimTime::ZERO, b, ClientFault::Pause).lasting(asks),
        link(b, 2, asks.minus(soon), late, LinkFault::HoldBack),
        Fault::of_node(restarted, 0, NodeFault::Crash).lasting(SimTime::micros(50)),
    ]);
}

/// Returns a fault between a client and a node from one time to another.
pub(super) fn link(client: u16, node: u16, from: SimTime, to: SimTime, fault: LinkFault) -> Fault {
    let direction = match fault {
        LinkFault::HoldBack => Direction::ToNode,
        _ => Direction::Both,
    };
    Fault {
        when: from.into(),
        lasts: to.minus(from),
        what: FaultKind::Link {
            clients: vec![client],
            nodes: vec![node],
            direction,
            fault,
        },
    }
}
