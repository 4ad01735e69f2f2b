//! Clients that mostly find the name free, and then lock it without a script.
//!
//! The adapter does that for a name that the client has had within the last second and was not refused within the last
//! second, on one server only on a connection that is two seconds old. Clients that compete all the time use scripts.

use super::{Fixed, leave_two_clients};
use crate::draw::Draw;
use crate::time::SimTime;
use crate::{Plan, WorkloadKind};

/// How long clients work: several times as long as a connection is young.
const DURATION: SimTime = SimTime::secs(6);

pub(super) fn apply(plan: &mut Plan, fixed: Fixed, draw: &mut Draw) {
    if fixed.work.is_none() {
        plan.workload.kind = match draw.between(0, 2) {
            0 => WorkloadKind::FencedWrites,
            _ => WorkloadKind::MutualExclusion,
        };
    }
    if fixed.clients.is_none() {
        leave_two_clients(plan);
    }
    let workload = &mut plan.workload;
    workload.names = 1;
    workload.hold_max = SimTime::nanos(workload.lease.as_nanos() / 10 * draw.between(1, 11));
    workload.hold_min = workload.hold_min.min(workload.hold_max);
    // Together with a hold less than a second, and long enough for the other client to come and go.
    workload.think_min = SimTime::millis(draw.between(50, 200));
    workload.think_max = SimTime::millis(draw.between(300, 700));
    plan.duration = plan.duration.max(DURATION);
}
