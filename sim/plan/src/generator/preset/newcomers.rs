//! A client whose first request to a node arrives after the node was flushed.
//!
//! A holds the lock by the first and the second node. B's request to the first node is slower than A's: it left before
//! A's claim was made, and arrives after that claim was flushed. B marks the node, and watches it for one longest
//! lease, counted from the reply. If B counted from the request, it would count the node's grant while A still relies
//! on the node. With the third node, both would have a majority.

use super::re_acquired::link;
use super::{Fixed, sides, two_clients};
use crate::draw::Draw;
use crate::fault::{ClientFault, Fault, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{Plan, Watchdog};

/// Long enough for B's delay. A member has a twentieth of a round to answer, and B's request may be later than twice
/// the allowed drift, which is 84 ms.
const LEASE: SimTime = SimTime::secs(4);

/// The time at which B sends its first request.
const BEGINS: SimTime = SimTime::millis(1);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    if !two_clients(plan, fixed, LEASE, BEGINS) {
        return sides::apply(plan, fixed, draw);
    }
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::Off;
    workload.hold_min = LEASE;
    workload.hold_max = LEASE;
    workload.checks = 600;
    workload.poll_cap = SimTime::millis(draw.between(2, 10));
    workload.backoff_cap = SimTime::millis(5);
    plan.network.min = SimTime::micros(draw.between(100, 300));
    plan.network.max = plan.network.min;
    plan.network.call_timeout = SimTime::millis(draw.between(220, 500));
    // The node that A and B share loses its counter.
    plan.not_demanded.push(Property::Fencing);
    let (a, b) = (0, 1);
    let end = plan.duration;
    let asks = SimTime::millis(draw.between(90, 170));
    let flushed = asks.plus(BEGINS).plus(SimTime::millis(draw.between(1, 6)));
    let arrives = flushed.plus(SimTime::micros(draw.between(100, 5_000)));
    plan.faults.extend([
        link(a, 2, SimTime::ZERO, end, LinkFault::Cut),
        link(b, 1, SimTime::ZERO, end, LinkFault::Cut),
        Fault::of_client(SimTime::ZERO, a, ClientFault::Pause).lasting(asks),
        link(b, 0, SimTime::ZERO, arrives, LinkFault::HoldBack),
        Fault::of_node(flushed, 0, NodeFault::Flush),
    ]);
}
