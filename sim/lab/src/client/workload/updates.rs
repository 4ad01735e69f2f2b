//! Reads from a store, works, and writes back the result.

use super::{Target, any, hold_span, think};
use crate::client::context::{Context, Fencing};
use quorlock_sim_world::history::Accepted;

/// Runs the workload. Writes always carry the token; `reading` selects whether reads do too.
pub(super) async fn client(ctx: Context, reading: Fencing) {
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
