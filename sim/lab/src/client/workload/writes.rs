//! Writes to a store while the lock is held.

use super::{Target, any, hold_span, think};
use crate::client::context::{Context, Fencing};

pub(super) async fn client(ctx: Context, fencing: Fencing) {
    let targets = Target::each(&ctx);
    loop {
        think(&ctx).await;
        let Some(target) = any(&ctx, &targets) else {
            return;
        };
        let Ok(held) = ctx.acquire(target.lock(&ctx), &target.names).await else {
            continue;
        };
        let section = ctx.section(&held);
        for _ in 0..ctx.plan().workload.checks.max(1) {
            let pause = hold_span(&ctx) / u32::from(ctx.plan().workload.checks.max(1));
            if ctx.cancellable(ctx.sleep(pause)).await.is_err() || !section.look(&held.guard) {
                break;
            }
            for name in &target.names {
                ctx.write(&held, *name, fencing).await;
            }
        }
        drop(section);
        let _ = ctx.release(held).await;
    }
}
