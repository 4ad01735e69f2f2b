//! Waits in the queue of a fair lock, sometimes gives up, and sometimes tries without waiting.

use super::{Target, any, exclusion, names_of, patiently, think, two};
use crate::client::context::Context;
use crate::client::subject::Subject;

pub(super) async fn client(ctx: Context) {
    // In a queue of two waiters, none can overtake another. Two tasks in each process make the queue long enough.
    two(work(&ctx), work(&ctx)).await;
}

async fn work(ctx: &Context) {
    let targets: Vec<Target> = names_of(ctx)
        .into_iter()
        .map(|texts| {
            let names = texts.iter().map(|text| ctx.name(text)).collect();
            Target::new(ctx, Subject::Product(ctx.fair(texts)), names)
        })
        .collect();
    loop {
        think(ctx).await;
        let Some(target) = any(ctx, &targets) else {
            return;
        };
        if let Some(held) = patiently(ctx, target).await {
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
