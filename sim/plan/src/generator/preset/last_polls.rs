//! Stops of holders for longer than their lease, at any use of the seam. Some of them fall into the poll in which the
//! holder's work ends.
//!
//! What the holder does in that poll happens after the end of its lease. This shows only if a waiter has acquired the
//! lock in the meantime. So claims do not outlast their leases, and waiters try often.

use crate::draw::Draw;
use crate::fault::{ClientFault, ClientTarget, Fault};
use crate::time::SimTime;
use crate::{Plan, WorkloadKind};

/// The number of checks. It is small, so that for many holds the poll that is hit is the last one of the work.
const LOOKS: u16 = 4;

/// The last use of the seam after which a process is stopped. Later stops would not end before the next stop begins.
const LAST_USE: u64 = 30;

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = WorkloadKind::LongWork;
    }
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(draw.between(60, 120));
    let lease = workload.lease.as_nanos();
    workload.names = 1;
    workload.hold_min = SimTime::nanos(lease / 10);
    workload.hold_max = SimTime::nanos(lease / 2);
    workload.think_min = SimTime::ZERO;
    workload.think_max = SimTime::nanos(lease / 4);
    workload.poll_cap = SimTime::nanos(lease / 10);
    workload.backoff_cap = SimTime::nanos(lease / 10);
    workload.checks = LOOKS;
    plan.remedies.margin = Some(SimTime::ZERO);
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 2_000)));
    let mut at = SimTime::nanos(draw.between(lease, 2 * lease));
    let last = SimTime::nanos(plan.duration.as_nanos() / 10 * 6);
    while at <= last {
        let lasts = SimTime::nanos(draw.between(lease / 10 * 12, 2 * lease));
        let nth = draw.between(1, LAST_USE) as u32;
        let holder = ClientTarget::Holder { name: None };
        let stop = Fault::of_client(at, holder, ClientFault::StopInside { nth });
        plan.faults.push(stop.lasting(lasts));
        at = at.plus(SimTime::nanos(draw.between(3 * lease, 4 * lease)));
    }
}
