//! Checks that calls had the effects that their results state.

use std::time::Duration;

use super::record::LastGuard;
use super::section::longest_validity;
use super::{Context, HeldLock};
use crate::client::subject::Hold;
use quorlock_sim_plan::fault::{Fault, Kind};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Lane, LockKind, WorkloadKind};
use quorlock_sim_world::engine::clients;
use quorlock_sim_world::engine::nodes::execution::claims_of;
use quorlock_sim_world::history::{BeliefStatement, BrokenStatement, NameId};
use quorlock_sim_world::world::with;

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Context {
    /// Records an extension with a wrong length. An extension must last for `lease` minus the drift allowance, counted
    /// from the request. It must not last beyond `lease` after the earliest time at which its requests can have been
    /// sent.
    pub(super) fn weigh_extension(&self, held: &HeldLock, lease: Duration, asked: u64) {
        let is_stop = |fault: &Fault| matches!(fault.kind(), Kind::StopInside | Kind::PauseInside);
        // If the process was stopped, any amount of time may have passed since the product read its clock. And no
        // extension goes beyond the longest hold.
        let is_capped = self.plan().workload.max_hold.is_some();
        if is_capped || self.plan().faults.iter().any(is_stop) {
            return;
        }
        let validity = held.guard.validity().unwrap_or_default();
        let now = with(|world| clients::shown(world, self.who()));
        let passed = Duration::from_nanos(now.saturating_sub(asked));
        let min = lease.saturating_sub(lease / 100 + Duration::from_millis(3) + passed);
        let max = longest_validity(self.plan(), SimTime::nanos(nanos(lease)));
        // In other workloads, other tasks may extend the same hold at the same time by a longer lease.
        let is_alone = self.plan().workload.kind == WorkloadKind::Extending;
        let said = match () {
            () if validity < min => BeliefStatement::Extended,
            () if is_alone && max.is_some_and(|max| max < validity) => BeliefStatement::Lease,
            () => return,
        };
        let process = self.who().process();
        let mut name = NameId(0);
        with(|world| {
            held.guard
                .each_name(&mut |text| name = world.history.name(text));
            let at = world.moment(self.who());
            world.history.broken.push(BrokenStatement {
                at,
                process,
                hold: held.hold,
                name,
                said,
            });
        });
    }

    /// Records a release that was confirmed although the claim still keeps other clients out.
    pub(super) fn weigh_release(&self, left: &LastGuard) {
        let plan = self.plan();
        let comes_again = |fault: &Fault| matches!(fault.kind(), Kind::Duplicate | Kind::Reorder);
        // A duplicated request may claim the name again. So may another task of the same owner. Where several tasks of a client wait,
        // the lock passes on to them with the same claim.
        let has_others = matches!(
            plan.workload.kind,
            WorkloadKind::CompetingTasks | WorkloadKind::Together
        );
        let is_claimed_anew = has_others || plan.faults.iter().any(comes_again);
        // A node that restarts with old data may have the claim again. So may a promoted replica.
        let has_past = |fault: &Fault| {
            matches!(
                fault.kind(),
                Kind::CrashNode | Kind::PowerLoss | Kind::Failover
            )
        };
        let comes_back = 0 < plan.nodes.replicas || plan.faults.iter().any(has_past);
        if plan.lane != Lane::Fast || is_claimed_anew || comes_back {
            return;
        }
        let max = match plan.lock {
            LockKind::Redlock => usize::from(plan.nodes.count).saturating_sub(1) / 2,
            LockKind::Single | LockKind::Multi => 0,
        };
        let process = self.who().process();
        with(|world| {
            for text in &left.names {
                let Ok(name) = quorlock::Name::new(text) else {
                    continue;
                };
                if claims_of(world, &name, left.owner) <= max {
                    continue;
                }
                let (at, name) = (world.moment(self.who()), world.history.name(text));
                world.history.broken.push(BrokenStatement {
                    at,
                    process,
                    hold: left.hold,
                    name,
                    said: BeliefStatement::Released,
                });
            }
        });
    }
}
