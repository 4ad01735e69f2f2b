//! Acquires or adopts, stays in the section for a while, and hands over or releases.

use quorlock_sim_plan::LockKind;

use super::exclusion::stay;
use super::{Target, any, names_of, patiently, think};
use crate::client::context::Context;

/// How many of the newest tickets are tried. Most of them have been adopted already.
const NEWEST: usize = 4;

pub(super) async fn client(ctx: Context) {
    let targets = targets(&ctx);
    loop {
        think(&ctx).await;
        let ticket = match ctx.random(0, 2) {
            0 => None,
            _ => ctx.ticket(NEWEST),
        };
        let adopted = match ticket {
            Some(ticket) => ctx.adopt(&ticket).await,
            None => None,
        };
        let held = match (adopted, any(&ctx, &targets)) {
            (None, Some(target)) => patiently(&ctx, target).await,
            (adopted, _) => adopted,
        };
        let Some(held) = held else {
            continue;
        };
        stay(&ctx, &held).await;
        match ctx.random(0, 2) {
            0 => {
                let _ = ctx.release(held).await;
            }
            _ => ctx.hand_over(held),
        }
    }
}

/// Returns one target for each name, or one for all of them. All are of one client, because a ticket is.
fn targets(ctx: &Context) -> Vec<Target> {
    match ctx.plan().lock {
        LockKind::Multi => names_of(ctx)
            .into_iter()
            .map(|texts| {
                let names = texts.iter().map(|text| ctx.name(text)).collect();
                Target::new(ctx, ctx.locks().all(&texts).into(), names)
            })
            .collect(),
        LockKind::Single | LockKind::Redlock => Target::each(ctx),
    }
}
