//! Re-enters a hold, through the guard and through its owner, and leaves it step by step.

use super::{Target, any, name, think};
use crate::client::context::{Context, HeldLock};

/// The largest number of times that a hold is re-entered.
const DEEPEST: u64 = 4;

pub(super) async fn client(ctx: Context) {
    let targets: Vec<Target> = (0..ctx.plan().workload.names.max(1))
        .map(|index| {
            let (lock, id) = (ctx.reentrant_subject(name(index)), ctx.name(&name(index)));
            Target::new(&ctx, lock, vec![id])
        })
        .collect();
    loop {
        think(&ctx).await;
        let Some(target) = any(&ctx, &targets) else {
            return;
        };
        if let Ok(held) = ctx.acquire(target.lock(&ctx), &target.names).await {
            nest(&ctx, target, held).await;
        }
    }
}

/// Re-enters the hold a random number of times, then leaves it guard by guard.
async fn nest(ctx: &Context, target: &Target, outermost: HeldLock) {
    let section = ctx.section(&outermost);
    let hold = outermost.hold;
    let mut guards = vec![outermost];
    for _ in 0..ctx.random(0, DEEPEST) {
        let Some(last) = guards.last() else { break };
        let entered = if ctx.random(0, 1) == 0 {
            ctx.reenter(last).await.ok()
        } else {
            ctx.acquire(target.lock(ctx), &target.names).await.ok()
        };
        let Some(held) = entered else { break };
        if held.hold != hold {
            // The hold was lost, and this is a new hold with its own section.
            let _ = ctx.release(held).await;
            break;
        }
        ctx.count(&held, u32::try_from(guards.len()).unwrap_or(u32::MAX) + 1);
        guards.push(held);
        super::exclusion::linger(ctx, &section, guards.last()).await;
    }
    while let Some(held) = guards.pop() {
        if let Some(outer) = guards.last() {
            let _ = ctx.release(held).await;
            ctx.count(outer, u32::try_from(guards.len()).unwrap_or(u32::MAX));
            super::exclusion::linger(ctx, &section, guards.last()).await;
        } else {
            let _ = section.look(&held.guard);
            drop(held);
            break;
        }
    }
}
