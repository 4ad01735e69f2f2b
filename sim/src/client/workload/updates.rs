//! Read from a store, work, and write back what came of it.

use super::{Target, any, hold_span, think};
use crate::client::context::{Context, Fencing};
use crate::history::Accepted;

/// The write carries the token; the read does if `reading` says so.
pub(super) async fn client(ctx: Context, reading: Fencing) {
    let targets = Target::each(&ctx);
    loop {
        think(&ctx).await;
        let Some(target) = any(&ctx, &targets) else {
            return;
        };
        let Ok(held) = ctx.acquire(&target.lock, &target.names).await else {
            continue;
        };
        let section = ctx.section(&held);
        for name in &target.names {
            let Some((Accepted::Yes, read_at)) = ctx.read_store(&held, *name, reading).await else {
                break;
            };
            let work = ctx.sleep(hold_span(&ctx));
            if ctx.cancellable(work).await.is_err() || !section.look(&held.guard) {
                break;
            }
            ctx.update(&held, *name, read_at).await;
        }
        drop(section);
        let _ = ctx.release(held).await;
    }
}
