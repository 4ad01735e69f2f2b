//! What a client draws: what it asks for, how long it waits for that, and how long it stays inside.

use std::time::Duration;

use super::{BOUNDS, Worker};
use crate::chaos::lock_under_test::{self, LockRequest, QueueOrder};
use crate::chaos::message::HoldKind;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{LockKind, Watchdog, WorkloadKind};
use quorlock_sim_world::history::Access;

impl Worker {
    /// Draws how long to wait at most: half of the waits have a bound. The simple locks and leaders have none.
    fn bound(&mut self) -> Option<Duration> {
        let plan = &self.settings.plan;
        let has_none =
            !plan.variant.has_product_clients() || plan.workload.kind == WorkloadKind::Leading;
        let is_drawn = !has_none && self.draw.chance(500_000);
        is_drawn.then(|| self.between(BOUNDS.0, BOUNDS.1))
    }

    /// Draws what to ask for next.
    pub(super) fn wanted(&mut self) -> LockRequest {
        let workload = self.settings.plan.workload.clone();
        LockRequest {
            kind: match workload.kind {
                WorkloadKind::Leading => HoldKind::Leadership,
                _ => HoldKind::Lock,
            },
            names: self.names(),
            access: match workload.kind {
                WorkloadKind::ReadWrite if self.draw.chance(600_000) => Access::Read,
                WorkloadKind::ReadWrite => Access::Write,
                _ => Access::Alone,
            },
            queue: match workload.kind {
                WorkloadKind::Fair => QueueOrder::Fair,
                _ => QueueOrder::Any,
            },
            is_renewed: match workload.watchdog {
                _ if workload.kind == WorkloadKind::LongWork => true,
                Watchdog::On => true,
                Watchdog::Off => false,
                Watchdog::Half => self.draw.chance(500_000),
            },
            wait: self.bound(),
        }
    }

    /// Draws one name, or several of them in any order. A lock that has its names on several nodes takes all of them,
    /// unless the work is to take several in any order.
    fn names(&mut self) -> Vec<u16> {
        let plan = &self.settings.plan;
        let (kind, many) = (plan.workload.kind, lock_under_test::names(plan));
        if plan.lock == LockKind::Multi && kind != WorkloadKind::Overlapping {
            return (0..many).collect();
        }
        let first = self.draw.index(usize::from(many));
        let first = u16::try_from(first).unwrap_or(0);
        if kind != WorkloadKind::Overlapping {
            return vec![first];
        }
        let size = 1 + self.draw.index(usize::from(many));
        let around = (0..many).map(|offset| (first + offset) % many);
        let mut names: Vec<u16> = around.take(size).collect();
        if self.draw.chance(500_000) {
            names.reverse();
        }
        names
    }

    /// Draws how long the client stays inside: usually up to an eighth of the plan's longest stay, in a tenth of cases
    /// up to all of it.
    pub(super) fn stay(&mut self) -> Duration {
        let workload = &self.settings.plan.workload;
        let (min, max) = (workload.hold_min, workload.hold_max);
        let short = SimTime::nanos(max.as_nanos() / 8).max(min);
        match self.draw.chance(100_000) {
            true => self.between(short, max),
            false => self.between(min, short),
        }
    }
}
