//! A node that is restarted with the data that it had before it was flushed.
//!
//! The operator asserts that the disk keeps everything, so a process with a confirmed marker inherits it. But this
//! marker belongs to the watch before the last one, as on a copy of a disk, and the claims of all holds since then are
//! missing. All clients have already observed the later watch, and none of them may let the node inherit the marker.

use super::{Fixed, sides, whole_leases};
use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{AssertedRestarts, LockKind, Persistence, Plan, Watchdog};

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    if plan.lock != LockKind::Redlock || !is_of_three {
        return sides::apply(plan, fixed, draw);
    }
    plan.nodes.count = 3;
    plan.workload.lease = SimTime::millis(draw.between(80, 160));
    whole_leases(plan, fixed.work, draw);
    plan.workload.watchdog = Watchdog::Off;
    let lease = plan.workload.lease.as_nanos();
    plan.workload.hold_min = SimTime::nanos(lease / 10 * 9);
    plan.workload.poll_cap = SimTime::millis(draw.between(2, 10));
    plan.workload.backoff_cap = SimTime::millis(2);
    plan.remedies.restarts = AssertedRestarts::KeepEverything;
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.network.min = SimTime::micros(draw.between(100, 500));
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 1_000)));
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    // The counter of tokens is restored with the disk, and both sides share this node.
    plan.not_demanded
        .extend([Property::Progress, Property::Fencing]);
    for client in 0..plan.clients {
        plan.faults.push(Fault {
            when: SimTime::ZERO.into(),
            lasts: plan.duration,
            what: FaultKind::Link {
                clients: vec![client],
                nodes: vec![1 + client % 2],
                direction: Direction::Both,
                fault: LinkFault::Cut,
            },
        });
    }
    let flushed = draw.between(lease, 2 * lease);
    // The watch takes a lease. After it, all clients that compete for the lock ask again, and see that it has ended.
    let back = flushed + draw.between(4 * lease, 7 * lease);
    let loses = SimTime::nanos(back - flushed / 2);
    let flush = Fault::of_node(SimTime::nanos(flushed), 0, NodeFault::Flush);
    let lost = Fault::of_node(SimTime::nanos(back), 0, NodeFault::PowerLoss { loses });
    let away = SimTime::micros(draw.between(50, 5_000));
    plan.faults.extend([flush, lost.lasting(away)]);
}
