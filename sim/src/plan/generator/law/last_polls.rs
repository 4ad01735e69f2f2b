//! Stops of holders for longer than their lease, at any use of the seam: sometimes in the poll in which their work
//! ends.
//!
//! What the holder does in that poll happens after the end of its lease. That shows if a waiter has acquired the lock
//! by then: so claims do not outlast their leases, and waiters try often.

use crate::plan::draw::Draw;
use crate::plan::fault::{ClientFault, ClientTarget, Fault};
use crate::plan::time::SimTime;
use crate::plan::{Plan, WorkloadKind};

/// Few checks, so that many polls of the work are its last.
const LOOKS: u16 = 4;

/// Stops after later uses of the seam would not end before the next stop.
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
