//! Requests that are duplicated and arrive again, in any order, long after their owner has released.
//!
//! A duplicated acquire creates a claim that no client relies on, and a duplicated renewal finds that claim later.
//! Their effect on the token counter shows only if the clocks of clients do not raise the counter. So a client whose
//! clock is far ahead has held the lock before.

use crate::draw::Draw;
use crate::fault::{ClientFault, Direction, Fault, FaultKind, LinkFault};
use crate::time::{ClockStep, SimTime};
use crate::{Plan, Watchdog, WorkloadKind};

pub(super) fn apply(plan: &mut Plan, fixed: Option<WorkloadKind>, draw: &mut Draw) {
    if fixed.is_none() {
        plan.workload.kind = match draw.between(0, 2) {
            0 => WorkloadKind::FencedWrites,
            _ => WorkloadKind::MutualExclusion,
        };
    }
    let workload = &mut plan.workload;
    workload.lease = SimTime::millis(draw.between(60, 120));
    let lease = workload.lease.as_nanos();
    workload.names = 1;
    workload.watchdog = Watchdog::On;
    workload.hold_min = SimTime::nanos(lease / 2);
    workload.hold_max = SimTime::nanos(lease);
    // The duplicates arrive while the lock is free.
    workload.think_min = SimTime::nanos(lease);
    workload.think_max = SimTime::nanos(4 * lease);
    workload.poll_cap = SimTime::nanos(lease / 3);
    workload.backoff_cap = SimTime::nanos(lease / 6);
    plan.network.min = SimTime::micros(draw.between(50, 500));
    plan.network.max = plan
        .network
        .min
        .plus(SimTime::micros(draw.between(0, 2_000)));
    // The clock of the first client is ahead of all others.
    for client in 0..plan.clients {
        let by = match client {
            0 => ClockStep::millis(draw.signed(10_000, 50_000)),
            _ => ClockStep::millis(draw.signed(-100_000_000, -50_000_000)),
        };
        plan.faults.push(Fault::of_client(
            SimTime::ZERO,
            client,
            ClientFault::Step { by },
        ));
    }
    let what = FaultKind::Link {
        clients: (0..plan.clients).collect(),
        nodes: (0..plan.nodes.count).collect(),
        direction: Direction::ToNode,
        fault: LinkFault::Duplicate {
            of_million: draw.between(200_000, 800_000) as u32,
            max: SimTime::nanos(3 * lease),
        },
    };
    plan.faults.push(Fault {
        when: SimTime::ZERO.into(),
        lasts: SimTime::nanos(plan.duration.as_nanos() / 10 * 7),
        what,
    });
}
