//! A hold passes to the next waiter of its process, without a release.
//!
//! Suppose 50 tasks of a process wait for one name. Each release and each acquire would be requests to all nodes, although the name
//! stays in the process. So the nodes see one hold that lasts longer, for at most eight more callers or 25 ms, and only
//! while no other client was seen to wait. What it takes is one renewal, which reserves the tokens (see
//! [`cohort`](crate::shared::hold)).

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::fencing::{Token, took_proposal};
use quorlock_core::message::{Renew, RenewReply, Reply, Request};
use quorlock_core::release::Confirmation;
use quorlock_core::time::Time;

use crate::operation::inquiry::Inquiry;
use crate::shared::client::Client;
use crate::shared::hold::{ClaimWatch, Hold, requests};
use crate::telemetry;

/// How long the next caller has to take the hold. A task may be blocked, and others wait for the name.
const UNTAKEN: Duration = Duration::from_millis(10);

/// How long members may take to reserve tokens. The release waits for it, and others wait for the release.
const RESERVING: Duration = Duration::from_millis(100);

/// What became of a hold that was to end.
pub(crate) enum Passed {
    /// Another caller has it.
    On,
    /// It must be released: this one, or the one after it, whose caller no longer waits.
    Not(Arc<Hold>),
}

/// Passes a hold to the next caller that waits for it in this process, if there is one and other clients do not wait.
///
/// If the future is dropped early, the hold is as it was.
pub(crate) async fn pass(client: &Client, hold: &Arc<Hold>) -> Passed {
    if !is_awaited(client, hold) || !hold.may_pass(client.now()) {
        return Passed::Not(hold.clone());
    }
    if hold.has_reserved() {
        return pass_reserved(client, hold);
    }
    match Box::pin(reserve(client, hold)).await {
        Some(reserved) => pass_with(client, hold, Some(reserved)),
        None => Passed::Not(hold.clone()),
    }
}

/// Passes a hold on if that takes no request.
fn pass_reserved(client: &Client, hold: &Arc<Hold>) -> Passed {
    match hold.has_reserved() && is_awaited(client, hold) {
        true => pass_with(client, hold, None),
        false => Passed::Not(hold.clone()),
    }
}

/// Whether a caller of this process waits, and no other client is known to do.
fn is_awaited(client: &Client, hold: &Hold) -> bool {
    !client.is_closed()
        && client.waiters.awaits(hold)
        && client.keeper.contended().told(&hold.layout.key) == 0
}

fn pass_with(client: &Client, hold: &Arc<Hold>, reserved: Option<Box<[Token]>>) -> Passed {
    let now = client.now();
    let watch = match client.config.watches_claims {
        true => ClaimWatch::begin(now),
        false => ClaimWatch::none(),
    };
    let Some(next) = hold.pass(now, reserved, watch) else {
        return Passed::Not(hold.clone());
    };
    let next = Arc::new(next);
    let keeper = &client.keeper;
    keeper.keep(now, &next);
    keeper.unreserve(None);
    // Before another caller can take it.
    keeper.stay(now + UNTAKEN, &next);
    if client.waiters.give(&next) {
        return Passed::On;
    }
    match keeper.end_stay(&next) {
        true => Passed::Not(next),
        // The keeper has begun to release it.
        false => Passed::On,
    }
}

/// Takes a hold that was passed to a caller which is there. Returns whether it is held.
pub(crate) fn take(client: &Client, hold: &Arc<Hold>) -> bool {
    if !client.keeper.end_stay(hold) {
        return false;
    }
    if hold.take(client.now()) {
        telemetry::passed();
        return true;
    }
    let_go(client, hold);
    false
}

/// Passes a hold on that was passed to a caller which is gone, or releases it.
pub(crate) fn decline(client: &Client, hold: &Arc<Hold>) {
    if client.keeper.end_stay(hold)
        && let Passed::Not(hold) = pass_reserved(client, hold)
    {
        let_go(client, &hold);
    }
}

fn let_go(client: &Client, hold: &Arc<Hold>) {
    let (count, status) = hold.leave(client.now());
    client.keeper.dropped(hold, count, status);
}

/// Makes a threshold of the members store the last token of the cohort. Returns the tokens if they did.
async fn reserve(client: &Client, hold: &Arc<Hold>) -> Option<Box<[Token]>> {
    // Before any request leaves, as in a confirmation.
    let sent = client.now();
    let stated = hold.state_lease(None);
    let (lease, tokens) = (stated.lease, hold.to_reserve());
    let token = |group: usize| tokens.get(group).copied().unwrap_or_default();
    let mut inquiry = Inquiry::begin(
        &hold.layout,
        &*client.runtime,
        sent + client.config.member_timeout(lease).min(RESERVING),
        |member| hold.counts(member),
        |member, place| {
            let mut claim = requests::claim(hold, member, stated);
            claim.token = token(place.group);
            Request::Renew(Renew {
                mode: place.mode,
                claims: vec![claim],
                retention: place.node.party.retention,
            })
        },
    );
    poll_fn(|cx| {
        inquiry.poll(
            cx,
            &*client.runtime,
            |confirming, member, at: Time, reply| {
                let Reply::Renew(replies) = reply else {
                    confirming.handle_failed(member);
                    return;
                };
                let reply = replies.first().copied().unwrap_or(RenewReply::NotYours);
                hold.renewed(at, member, sent, lease, reply);
                match reply {
                    // It stores a larger one, which another client may have drawn.
                    RenewReply::AlreadyYours { token: stored }
                        if !took_proposal(stored, token(hold.layout.place(member).group)) =>
                    {
                        confirming.handle_failed(member);
                    }
                    reply => confirming.handle_renewed(member, reply),
                }
            },
        )
    })
    .await;
    let is_confirmed = inquiry.outcome() == Confirmation::Confirmed;
    // A reply may have shortened the validity.
    client.keeper.reschedule(hold);
    is_confirmed.then_some(tokens)
}
