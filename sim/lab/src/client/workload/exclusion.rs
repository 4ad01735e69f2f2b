//! Acquires, stays in the section for a while, and releases.

use super::{Target, any, hold_span, think};
use crate::client::context::{Context, HeldLock, SectionHandle};

pub(super) async fn client(ctx: Context) {
    let targets = Target::each(&ctx);
    loop {
        think(&ctx).await;
        let Some(target) = any(&ctx, &targets) else {
            return;
        };
        if let Ok(held) = ctx.acquire(target.lock(&ctx), &target.names).await {
            stay(&ctx, &held).await;
            let _ = ctx.release(held).await;
        }
    }
}

/// Stays in the section and checks the lock now and then. Leaves the section as soon as the lock is no longer held.
pub(super) async fn stay(ctx: &Context, held: &HeldLock) {
    let section = ctx.section(held);
    let checks = u32::from(ctx.plan().workload.checks).max(1);
    let step = hold_span(ctx) / checks;
    for _ in 0..checks {
        if ctx.cancellable(ctx.sleep(step)).await.is_err() || !section.look(&held.guard) {
            return;
        }
    }
}

/// Stays for a quarter of the time of a hold, then checks the lock.
pub(super) async fn linger(ctx: &Context, section: &SectionHandle, held: Option<&HeldLock>) {
    let _ = ctx.cancellable(ctx.sleep(hold_span(ctx) / 4)).await;
    if let Some(held) = held {
        let _ = section.look(&held.guard);
    }
}
