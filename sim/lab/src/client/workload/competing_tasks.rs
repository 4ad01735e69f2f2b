//! Several tasks of one process compete for the same lock, some of them as one owner.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::{Target, any, exclusion, hold_span, patiently, think, two};
use crate::client::context::{Context, HeldLock};
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
        let acquired = patiently(ctx, target);
        let acquired = match ctx.random(0, 3) {
            0 => interrupted(ctx, acquired).await,
            _ => acquired.await,
        };
        let Some(held) = acquired else {
            continue;
        };
        let held = match ctx.random(0, 3) {
            0 => share(ctx, held).await,
            _ => held,
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

/// Polls a future a few times, then not for a while, as in a task that is busy with other work.
async fn interrupted<F: Future>(ctx: &Context, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut polls = ctx.random(1, 3);
    let early = poll_fn(|cx| {
        polls -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    if let Some(output) = early.await {
        return output;
    }
    ctx.sleep(hold_span(ctx)).await;
    future.await
}

/// Makes a second guard, and releases the first one.
async fn share(ctx: &Context, held: HeldLock) -> HeldLock {
    let Ok(second) = ctx.reenter(&held).await else {
        return held;
    };
    let _ = ctx.release(held).await;
    second
}
