//! Tries without waiting, many times at once.

use super::{Target, any, exclusion};
use crate::client::context::{Context, HeldLock};

/// The largest number of tries in one burst.
const AT_ONCE: u64 = 4;

pub(super) async fn client(ctx: Context) {
    let targets = Target::each(&ctx);
    loop {
        super::think(&ctx).await;
        let mut won: Option<HeldLock> = None;
        for _ in 0..ctx.random(1, AT_ONCE) {
            let Some(target) = any(&ctx, &targets) else {
                return;
            };
            let tried = ctx.try_acquire(target.lock(&ctx), &target.names).await;
            if let Ok(Some(held)) = tried
                && won.is_none()
            {
                won = Some(held);
            }
        }
        if let Some(held) = won {
            exclusion::stay(&ctx, &held).await;
            let _ = ctx.release(held).await;
        }
    }
}
