//! A client that has never asked a node before, and whose first request finds it flushed.
//!
//! A holds by the first node and the second. B's request to the first one is on the way for longer than A's, so it left before A's
//! claim was made, and comes when that has been flushed. B marks the node, and watches it for one longest lease from the reply on. Should
//! it watch from the request on, it would count the node while A still relies on it, and with the third one both had a majority.

use super::re_acquired::link;
use super::{Fixed, sides, two_clients};
use crate::plan::draw::Draw;
use crate::plan::fault::{ClientFault, Fault, LinkFault, NodeFault};
use crate::plan::property::Property;
use crate::plan::time::SimTime;
use crate::plan::{Plan, Watchdog};

/// A member of a round is given a twentieth of it, and the drift that is allowed for, twice, is 84 ms: B's request may be late by
/// more than that.
const LEASE: SimTime = SimTime::secs(4);

/// When B asks first.
const BEGINS: SimTime = SimTime::millis(1);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    if !two_clients(plan, fixed, LEASE, BEGINS) {
        return sides::apply(plan, fixed, draw);
    }
    let workload = &mut plan.workload;
    workload.watchdog = Watchdog::Off;
    workload.hold_least = LEASE;
    workload.hold_most = LEASE;
    workload.looks = 600;
    workload.poll_cap = SimTime::millis(draw.between(2, 10));
    workload.backoff_cap = SimTime::millis(5);
    plan.network.least = SimTime::micros(draw.between(100, 300));
    plan.network.most = plan.network.least;
    plan.network.call_timeout = SimTime::millis(draw.between(220, 500));
    // The node that both have in common loses its counter.
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
