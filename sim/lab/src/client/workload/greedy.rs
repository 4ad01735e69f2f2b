//! Acquires, stays in the section for a while, releases, and acquires again at once.

use super::exclusion::stay;
use super::{Target, any};
use crate::client::context::Context;

pub(super) async fn client(ctx: Context) {
    let targets = Target::each(&ctx);
    while let Some(target) = any(&ctx, &targets) {
        match ctx.acquire(target.lock(&ctx), &target.names).await {
            Ok(held) => {
                stay(&ctx, &held).await;
                let _ = ctx.release(held).await;
            }
            // While no node can be reached, the acquisition fails at once. Without a pause, no time would pass.
            Err(_) => super::think(&ctx).await,
        }
    }
}
