//! For one client, the addresses of two nodes lead to one server for the whole run.
//!
//! Of three nodes, this client reaches one server by two addresses, and the other clients reach the other two. If that
//! server counted twice, both sides would have a majority.

use super::{Fixed, sides, whole_leases};
use crate::draw::Draw;
use crate::fault::{Direction, Fault, FaultKind, LinkFault, NodeFault};
use crate::property::Property;
use crate::time::SimTime;
use crate::{LockKind, Persistence, Plan, Watchdog};

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    let is_of_three = plan.nodes.count == 3 || fixed.nodes.is_none();
    if plan.lock != LockKind::Redlock || !is_of_three {
        return sides::apply(plan, fixed, draw);
    }
    plan.nodes.count = 3;
    whole_leases(plan, fixed.work, draw);
    if draw.chance(300_000) {
        plan.workload.watchdog = Watchdog::On;
    }
    plan.nodes.persistence = Persistence::EveryWrite;
    plan.workload.poll_cap = SimTime::millis(draw.between(3, 40));
    plan.workload.backoff_cap = SimTime::millis(draw.between(2, 20));
    plan.healed_at = Some(plan.duration);
    plan.progress_within = Some(SimTime::ZERO);
    // One side may be excluded while the other one keeps winning, and a side that is cut off has no majority.
    plan.not_demanded.push(Property::Progress);
    let (one, other) = match draw.chance(500_000) {
        true => (0, 1),
        false => (1, 0),
    };
    let misled = draw.index(usize::from(plan.clients)) as u16;
    let misroute = NodeFault::Misroute {
        clients: vec![misled],
        to: one,
    };
    let misroute = Fault::of_node(SimTime::ZERO, other, misroute);
    plan.faults.push(misroute.lasting(plan.duration));
    let others = (0..plan.clients).filter(|client| *client != misled);
    plan.faults.push(cut(plan, others.collect(), one));
    if draw.chance(700_000) {
        plan.faults.push(cut(plan, vec![misled], 2));
    }
}

fn cut(plan: &Plan, clients: Vec<u16>, node: u16) -> Fault {
    Fault {
        when: SimTime::ZERO.into(),
        lasts: plan.duration,
        what: FaultKind::Link {
            clients,
            nodes: vec![node],
            direction: Direction::Both,
            fault: LinkFault::Cut,
        },
    }
}
