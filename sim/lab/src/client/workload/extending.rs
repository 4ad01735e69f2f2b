//! Extends a hold in one task and re-enters it in another, while the watchdog renews it.

use super::exclusion::linger;
use super::{Target, any, think, two};
use crate::client::context::{Context, HeldLock, SectionHandle};

/// How often a hold is extended and re-entered. The extensions grow in equal steps up to twice the lease.
const STEPS: u32 = 4;

pub(super) async fn client(ctx: Context) {
    let targets = Target::each(&ctx);
    loop {
        think(&ctx).await;
        let Some(target) = any(&ctx, &targets) else {
            return;
        };
        if let Ok(held) = ctx.acquire(target.lock(&ctx), &target.names).await {
            let section = ctx.section(&held);
            two(extend(&ctx, &section, &held), enter(&ctx, &section, &held)).await;
            let _ = section.look(&held.guard);
            drop(section);
            let _ = ctx.release(held).await;
        }
    }
}

async fn extend(ctx: &Context, section: &SectionHandle, held: &HeldLock) {
    let lease = ctx.plan().workload.lease.as_duration();
    for step in 1..=STEPS {
        linger(ctx, section, Some(held)).await;
        if ctx.extend(held, lease + lease * step / STEPS).await == Err(None) {
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
