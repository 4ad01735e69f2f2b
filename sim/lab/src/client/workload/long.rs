//! Works for longer than a lease under the watchdog. The work is cancelled if the lock is lost.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use super::{Target, hold_span, think};
use crate::client::context::{Context, HeldLock, SectionHandle};

pub(super) async fn client(ctx: Context) {
    let targets = Target::each(&ctx);
    loop {
        think(&ctx).await;
        let Some(target) = super::any(&ctx, &targets) else {
            return;
        };
        if let Ok(held) = ctx.acquire(&target.renewed, &target.names).await {
            let lease = ctx.plan().workload.lease.as_duration();
            let span = hold_span(&ctx) + lease.mul_f64(1.5);
            work(&ctx, held, span).await;
        }
    }
}

async fn work(ctx: &Context, held: HeldLock, span: Duration) {
    let section = ctx.section(&held);
    let steps = u32::from(ctx.plan().workload.checks).max(4);
    let ended = Cell::new(None);
    let body = async {
        let sleeps = async {
            for _ in 0..steps {
                ctx.sleep(span / steps).await;
            }
        };
        believing(&section, sleeps).await;
        ended.set(Some(section.moment()));
    };
    if let (Ok(Some(())), Some(ended)) = (
        ctx.cancellable(held.guard.while_held(body)).await,
        ended.get(),
    ) {
        // `while_held` guarantees that the lock was held when the work ended, even if its last poll took a long time.
        section.believe_until(ended);
    }
}

/// Polls work that runs only while the lock is held, and records before each poll that it is held.
async fn believing(section: &SectionHandle, work: impl Future<Output = ()>) {
    let mut work = pin!(work);
    poll_fn(|cx| {
        section.believe();
        work.as_mut().poll(cx)
    })
    .await;
}
