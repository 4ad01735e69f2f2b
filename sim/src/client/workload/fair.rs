//! Wait for one's turn, give up at times, and try without waiting.

use super::{Target, any, exclusion, hold_span, leased, names_of, think, two};
use crate::client::context::{Context, Held};
use crate::client::subject::Subject;

pub(super) async fn client(ctx: Context) {
    // A queue of two is none: with two at work in each process there are enough to overtake each other.
    two(work(&ctx), work(&ctx)).await;
}

async fn work(ctx: &Context) {
    let targets: Vec<Target> = names_of(ctx)
        .into_iter()
        .map(|texts| {
            let names = texts.iter().map(|text| ctx.name(text)).collect();
            let lock = leased(ctx, Subject::Product(ctx.fair(texts)));
            Target { lock, names }
        })
        .collect();
    loop {
        think(ctx).await;
        let Some(target) = any(ctx, &targets) else {
            return;
        };
        if let Some(held) = turn(ctx, target).await {
            exclusion::stay(ctx, &held).await;
            if ctx.random(0, 7) == 0
                && let Ok(again) = ctx.reenter(&held).await
            {
                ctx.count(&again, 2);
                let _ = ctx.release(again).await;
            }
            let _ = ctx.release(held).await;
        }
    }
}

/// Mostly patient.
async fn turn(ctx: &Context, target: &Target) -> Option<Held> {
    match ctx.random(0, 9) {
        0 => ctx
            .try_acquire(&target.lock, &target.names)
            .await
            .ok()
            .flatten(),
        1 | 2 => {
            let patience = hold_span(ctx) * u32::try_from(ctx.random(1, 4)).unwrap_or(1);
            let lock = target.lock.clone().wait(patience);
            ctx.acquire(&lock, &target.names).await.ok()
        }
        _ => ctx.acquire(&target.lock, &target.names).await.ok(),
    }
}
