//! Acquires locks of several clients together and uses one hold from several tasks at the same time. Each client has
//! its own settings, age and clock.

use quorlock::Lock;

use super::exclusion::linger;
use super::{Target, hold_span, name, patiently, think, two};
use crate::client::context::{Context, HeldLock, SectionHandle};
use crate::client::subject::Subject;

/// How often each of two tasks extends a hold, and how often a third task re-enters it.
const STEPS: u32 = 3;

pub(super) async fn client(ctx: Context) {
    two(work(&ctx), two(work(&ctx), work(&ctx))).await;
}

async fn work(ctx: &Context) {
    loop {
        think(ctx).await;
        let Some(target) = target(ctx) else {
            return;
        };
        let Some(held) = patiently(ctx, &target).await else {
            continue;
        };
        let section = ctx.section(&held);
        let extensions = two(extend(ctx, &section, &held), extend(ctx, &section, &held));
        two(extensions, enter(ctx, &section, &held)).await;
        // The client now relies on the hold for longer than some nodes have been watched.
        stay_on(ctx, &section, &held).await;
        drop(section);
        match ctx.random(0, 3) {
            0 => drop(held),
            _ => {
                let _ = ctx.release(held).await;
            }
        }
    }
}

/// Picks some of the names in some order. The lock uses the lease and the clock of the first name's client.
fn target(ctx: &Context) -> Option<Target> {
    let names = ctx.plan().workload.names.max(2);
    let first = u16::try_from(ctx.random(0, u64::from(names) - 1)).ok()?;
    let size = u16::try_from(ctx.random(1, u64::from(names))).ok()?;
    let mut indices: Vec<u16> = (0..size).map(|offset| (first + offset) % names).collect();
    if ctx.random(0, 1) == 0 {
        indices.reverse();
    }
    let mut parts = indices.iter().map(|index| part(ctx, *index));
    let lock = parts.next()?;
    let lock = lock.and(parts);
    let names = indices.iter().map(|index| ctx.name(&name(*index)));
    Some(Target::new(ctx, Subject::Product(lock), names.collect()))
}

/// Creates the lock of one name, sometimes with a client that started later than the others. The first name gets a
/// fair lock.
fn part(ctx: &Context, index: u16) -> Lock {
    let text = name(index);
    let locks = match ctx.random(0, 4) {
        0 => ctx.another_client_of(&text),
        _ => ctx.client_of(&text),
    };
    match index {
        0 => locks.fair(text),
        _ => locks.lock(text),
    }
}

/// Extends the hold by up to four leases. This is more than the clients of some nodes allow, so the call may fail.
async fn extend(ctx: &Context, section: &SectionHandle, held: &HeldLock) {
    let lease = ctx.plan().workload.lease.as_duration();
    for _ in 0..STEPS {
        linger(ctx, section, Some(held)).await;
        let halves = u32::try_from(ctx.random(2, 8)).unwrap_or(2);
        if ctx.extend(held, lease * halves / 2).await == Err(None) {
            return;
        }
    }
}

async fn stay_on(ctx: &Context, section: &SectionHandle, held: &HeldLock) {
    let checks = u32::from(ctx.plan().workload.checks).max(1);
    let step = hold_span(ctx) / checks;
    for _ in 0..checks {
        if ctx.cancellable(ctx.sleep(step)).await.is_err() || !section.look(&held.guard) {
            return;
        }
    }
}

async fn enter(ctx: &Context, section: &SectionHandle, held: &HeldLock) {
    for _ in 0..STEPS {
        linger(ctx, section, Some(held)).await;
        if let Ok(again) = ctx.reenter(held).await {
            let _ = section.look(&again.guard);
            let _ = ctx.release(again).await;
        }
    }
}
