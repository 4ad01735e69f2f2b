//! Stops a waiter between a reading of its clock and the replies to its requests.
//!
//! A waiter that dates a reply by a reading from before the stop dates what others did during the stop too early. The
//! error shows only if such an action, the stop and the replies coincide, and if a holder stays until the end of its
//! lease. So there are many stops, each with requests that are delayed for as long.

use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault, Trigger};
use crate::time::SimTime;
use crate::{LockKind, Plan, Watchdog, WorkloadKind};

/// The last use of the seam after which a process is stopped. Later stops rarely coincide with the replies.
const LAST_USE: u64 = 40;

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = WorkloadKind::MutualExclusion;
    }
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(draw.between(60, 120));
    let lease = workload.lease.as_nanos();
    workload.names = 1;
    workload.watchdog = Watchdog::Off;
    workload.hold_min = SimTime::nanos(lease / 2);
    workload.hold_max = SimTime::nanos(lease / 10 * 11);
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::nanos(draw.between(lease / 10, lease));
    workload.poll_cap = SimTime::nanos(lease / 2 * 3);
    workload.backoff_cap = SimTime::nanos(lease / 3);
    workload.checks = 20;
    // Without a margin, claims expire by themselves, and the observations of the waiter have no effect.
    if plan.lock != LockKind::Redlock {
        plan.remedies.margin = Some(plan.longest_lease());
    }
    let stopped = draw.index(usize::from(plan.clients)) as u16;
    let mut at = SimTime::nanos(draw.between(lease, 2 * lease));
    let last = SimTime::nanos(plan.duration.as_nanos() / 10 * 6);
    while at <= last {
        let late = SimTime::nanos(draw.between(lease / 10 * 6, lease));
        let more = SimTime::nanos(draw.between(lease / 10, lease / 5));
        plan.faults.push(Fault {
            when: Trigger::At(at),
            lasts: late,
            what: FaultKind::Link {
                clients: vec![stopped],
                nodes: (0..plan.nodes.count).collect(),
                direction: Direction::ToNode,
                fault: LinkFault::HoldBack,
            },
        });
        let nth = draw.between(1, LAST_USE) as u32;
        let stop = ClientFault::StopInside { nth };
        plan.faults
            .push(Fault::of_client(at, stopped, stop).lasting(late.plus(more)));
        at = at.plus(SimTime::nanos(draw.between(2 * lease, 3 * lease)));
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use crate::LockKind;
    use crate::fault::Kind;
    use crate::generator::{FaultChoice, PlanGenerator};

    /// Returns the number of stops that coincide with late requests of the same client.
    fn meetings(lock: LockKind, seed: u64, faults: &str) -> usize {
        let faults = FaultChoice::from_str(faults).unwrap();
        let generator = PlanGenerator {
            faults,
            lock,
            ..PlanGenerator::default()
        };
        let plan = generator.plan(seed);
        crate::check(&plan).unwrap();
        let stops = plan
            .faults
            .iter()
            .filter(|fault| fault.kind() == Kind::StopInside);
        let meets = stops.filter(|stop| {
            plan.faults.iter().any(|late| {
                late.kind() == Kind::HoldBack
                    && late.when == stop.when
                    && late.clients() == stop.clients()
            })
        });
        meets.count()
    }

    #[test]
    fn a_plan_in_ten_stops_a_waiter_again_and_again_beside_its_late_requests() {
        for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
            for faults in ["inside", "all"] {
                let many = (0..1_000).filter(|seed| 4 <= meetings(lock, *seed, faults));
                let many = many.count();
                assert!((70..=130).contains(&many), "{lock:?} {faults}: {many}");
            }
            assert!((0..200).all(|seed| meetings(lock, seed, "stop-inside,hold-back") < 4));
        }
    }
}
