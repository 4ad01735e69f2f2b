//! The workloads of the simulator's own clients.

mod competing_tasks;
mod exclusion;
mod extending;
mod fair;
mod greedy;
mod handing_over;
mod leading;
mod long;
mod overlapping;
mod read_write;
mod reentrant;
mod storm;
mod together;
mod updates;
mod writes;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use crate::client::context::{Context, Fencing, HeldLock};
use crate::client::subject::Subject;
use quorlock_sim_plan::{Watchdog, WorkloadKind};
use quorlock_sim_world::history::NameId;

/// Returns the work of a client for the plan's workload.
pub(crate) fn main(ctx: Context) -> Pin<Box<dyn Future<Output = ()>>> {
    // Names are registered in this order, so that the faults of a plan can refer to them by number.
    for index in 0..ctx.plan().workload.names {
        let _ = ctx.name(&name(index));
    }
    match ctx.plan().workload.kind {
        WorkloadKind::MutualExclusion => Box::pin(exclusion::client(ctx)),
        WorkloadKind::Reentrant => Box::pin(reentrant::client(ctx)),
        WorkloadKind::Overlapping => Box::pin(overlapping::client(ctx)),
        WorkloadKind::UnfencedWrites => Box::pin(writes::client(ctx, Fencing::Off)),
        WorkloadKind::FencedWrites => Box::pin(writes::client(ctx, Fencing::On)),
        WorkloadKind::LongWork => Box::pin(long::client(ctx)),
        WorkloadKind::TryStorm => Box::pin(storm::client(ctx)),
        WorkloadKind::Fair => Box::pin(fair::client(ctx)),
        WorkloadKind::ReadWrite => Box::pin(read_write::client(ctx)),
        WorkloadKind::Extending => Box::pin(extending::client(ctx)),
        WorkloadKind::FencedUpdates => Box::pin(updates::client(ctx, Fencing::Off)),
        WorkloadKind::CompetingTasks => Box::pin(competing_tasks::client(ctx)),
        WorkloadKind::Greedy => Box::pin(greedy::client(ctx)),
        WorkloadKind::Together => Box::pin(together::client(ctx)),
        WorkloadKind::Sides => Box::pin(read_write::both_sides(ctx)),
        WorkloadKind::Leading => Box::pin(leading::client(ctx)),
        WorkloadKind::HandingOver => Box::pin(handing_over::client(ctx)),
        WorkloadKind::RaisedUpdates => Box::pin(updates::client(ctx, Fencing::On)),
    }
}

/// Returns the text of the `index`-th name.
pub(crate) fn name(index: u16) -> String {
    quorlock_sim_plan::name_of(index)
}

/// A lock, with the ids of its names.
struct Target {
    /// The lock whose holds the watchdog renews.
    renewed: Subject,
    /// The same lock with the lease of the plan, which nothing renews.
    leased: Subject,
    names: Vec<NameId>,
}

impl Target {
    fn new(ctx: &Context, lock: Subject, names: Vec<NameId>) -> Self {
        let lease = ctx.plan().workload.lease.as_duration();
        Target {
            renewed: lock.clone(),
            leased: lock.lease(lease),
            names,
        }
    }

    /// Returns the lock for the next hold.
    fn lock(&self, ctx: &Context) -> &Subject {
        match is_renewed(ctx) {
            true => &self.renewed,
            false => &self.leased,
        }
    }

    /// Creates the target for one name. If a lock takes one name from each node, the target covers all names.
    fn of(ctx: &Context, index: u16) -> Self {
        if ctx.plan().lock == quorlock_sim_plan::LockKind::Multi {
            Self::over(ctx, 0..ctx.plan().workload.names.max(2))
        } else {
            Self::over(ctx, [index])
        }
    }

    /// Creates the target for several names.
    fn over(ctx: &Context, indices: impl IntoIterator<Item = u16>) -> Self {
        let texts: Vec<String> = indices.into_iter().map(name).collect();
        let names = texts.iter().map(|text| ctx.name(text)).collect();
        Self::new(ctx, ctx.subject(&texts), names)
    }

    /// Creates one target for each name.
    fn each(ctx: &Context) -> Vec<Self> {
        let names = 0..ctx.plan().workload.names.max(1);
        names.map(|index| Self::of(ctx, index)).collect()
    }
}

/// Returns the sets of names that are acquired together, one set for each lock of the plan.
fn names_of(ctx: &Context) -> Vec<Vec<String>> {
    let names = ctx.plan().workload.names;
    match ctx.plan().lock {
        quorlock_sim_plan::LockKind::Multi => vec![(0..names.max(2)).map(name).collect()],
        _ => (0..names.max(1)).map(|index| vec![name(index)]).collect(),
    }
}

/// Runs both futures concurrently until both have ended.
async fn two(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut one_ended, mut other_ended) = (false, false);
    poll_fn(|cx| {
        one_ended = one_ended || one.as_mut().poll(cx).is_ready();
        other_ended = other_ended || other.as_mut().poll(cx).is_ready();
        match one_ended && other_ended {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

/// Returns whether the watchdog renews the next hold.
fn is_renewed(ctx: &Context) -> bool {
    match ctx.plan().workload.watchdog {
        Watchdog::On => true,
        Watchdog::Off => false,
        Watchdog::Half => ctx.random(0, 1) == 0,
    }
}

/// Returns a random element.
fn any<'a, T>(ctx: &Context, list: &'a [T]) -> Option<&'a T> {
    if let [only] = list {
        return Some(only);
    }
    let last = u64::try_from(list.len()).ok()?.checked_sub(1)?;
    list.get(usize::try_from(ctx.random(0, last)).ok()?)
}

async fn think(ctx: &Context) {
    let workload = &ctx.plan().workload;
    let span = ctx.random_span(workload.think_min, workload.think_max);
    ctx.sleep(span).await;
}

fn hold_span(ctx: &Context) -> Duration {
    let workload = &ctx.plan().workload;
    ctx.random_span(workload.hold_min, workload.hold_max)
}

/// Acquires a lock, and sometimes gives up early or does not wait.
async fn patiently(ctx: &Context, target: &Target) -> Option<HeldLock> {
    let lock = target.lock(ctx);
    match ctx.random(0, 9) {
        0 => ctx.try_acquire(lock, &target.names).await.ok().flatten(),
        1 | 2 => {
            let patience = hold_span(ctx) * u32::try_from(ctx.random(1, 4)).unwrap_or(1);
            let lock = lock.clone().wait(patience);
            ctx.acquire(&lock, &target.names).await.ok()
        }
        _ => ctx.acquire(lock, &target.names).await.ok(),
    }
}
