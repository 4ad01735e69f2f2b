//! Acquires overlapping sets of names, listed in different orders.

use super::exclusion::stay;
use super::{Target, think};
use crate::client::context::Context;

pub(super) async fn client(ctx: Context) {
    let names = ctx.plan().workload.names.max(2);
    loop {
        think(&ctx).await;
        let first = u16::try_from(ctx.random(0, u64::from(names) - 1)).unwrap_or(0);
        let size = u16::try_from(ctx.random(1, u64::from(names))).unwrap_or(1);
        let around = (0..size).map(|offset| (first + offset) % names);
        let indices: Vec<u16> = if ctx.random(0, 1) == 0 {
            around.collect()
        } else {
            around.rev().collect()
        };
        let target = Target::over(&ctx, indices);
        if let Ok(held) = ctx.acquire(target.lock(&ctx), &target.names).await {
            stay(&ctx, &held).await;
            let _ = ctx.release(held).await;
        }
    }
}
