//! Several tasks of one process compete for the same lock, some of them as one owner.

use super::{Target, any, exclusion, patiently, think, two};
use crate::client::context::Context;
use crate::client::subject::Subject;
use quorlock_sim_plan::LockKind;

pub(super) async fn client(ctx: Context) {
    let alone = Target::each(&ctx);
    let owned = owned(&ctx);
    // The first task leads the process's queue and the second one follows. The third is still waiting when the second
    // becomes the leader. Two tasks of one owner acquire in turn.
    let first = two(work(&ctx, &alone), work(&ctx, &alone));
    let second = two(work(&ctx, &owned), work(&ctx, &owned));
    two(work(&ctx, &alone), two(first, second)).await;
}

/// Creates the same locks for an owner of this process. A lock that takes one name from each node has no owner.
fn owned(ctx: &Context) -> Vec<Target> {
    if ctx.plan().lock == LockKind::Multi {
        return Target::each(ctx);
    }
    let owner = ctx.locks().owner();
    let names = 0..ctx.plan().workload.names.max(1);
    names
        .map(|index| {
            let text = super::name(index);
            let id = ctx.name(&text);
            Target::new(ctx, Subject::Owned(owner.lock(text)), vec![id])
        })
        .collect()
}

async fn work(ctx: &Context, targets: &[Target]) {
    loop {
        think(ctx).await;
        let Some(target) = any(ctx, targets) else {
            return;
        };
        let Some(held) = patiently(ctx, target).await else {
            continue;
        };
        exclusion::stay(ctx, &held).await;
        match ctx.random(0, 3) {
            0 => drop(held),
            _ => {
                let _ = ctx.release(held).await;
            }
        }
    }
}
