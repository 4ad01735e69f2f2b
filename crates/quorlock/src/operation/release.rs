//! The release of a hold, with a report.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::message::{ReleaseReply, Reply};
use quorlock_core::release::Confirmation;
use quorlock_core::renewal::Status;
use quorlock_core::time::Time;

use crate::error::ReleaseError;
use crate::operation::inquiry::Inquiry;
use crate::shared::client::Client;
use crate::shared::contended::{Answers, Shown};
use crate::shared::hold::{Hold, requests};
use crate::shared::keeper::{CleanUp, late};
use crate::shared::wake_ups::HeardBefore;
use crate::telemetry;

/// A release in progress. If it is dropped early, the keeper completes it.
pub(crate) struct Releasing {
    client: Arc<Client>,
    hold: Arc<Hold>,
    count: u32,
    began: Time,
    /// The largest number of other clients that a node notified of the release.
    told: u32,
    /// When the first member replied. A majority of others may have confirmed the release earlier.
    first_replied: Option<Time>,
    answers: Answers,
    /// Wake-ups that resting subscriptions had received before the release; `None` if no subscriptions rest.
    heard_before: Option<HeardBefore>,
    inquiry: Inquiry,
}

impl Releasing {
    /// Removes one guard from a hold, with its place at the keeper. The last one releases the claims.
    ///
    /// # Errors
    /// [`ReleaseError::NotHeld`] if the hold is already known to be lost. Nothing is sent then: the keeper cleans up.
    pub(crate) fn begin(
        client: Arc<Client>,
        hold: Arc<Hold>,
    ) -> Result<Option<Self>, ReleaseError> {
        let now = client.now();
        let (count, status) = hold.leave(now);
        let has_ended = count == 0 && status == Status::Held;
        client.keeper.unreserve(has_ended.then_some(&*hold));
        match status {
            Status::Held => {}
            Status::Releasing => return Ok(None),
            // This includes a closed client: its work was not protected after the client was closed, and if its
            // runtime has ended, the claim may still exist.
            Status::Lost(_) => {
                let names = hold.layout.title();
                return Err(ReleaseError::NotHeld { names });
            }
        }
        let orphans = if count == 0 {
            hear_late(&client, &hold)
        } else {
            Vec::new()
        };
        let claimed = hold.claimed();
        let answers = if orphans.is_empty() && !hold.has_unanswered() {
            Answers::All
        } else {
            Answers::Some
        };
        let heard_before = match count {
            0 => client.keeper.contended().releasing(&hold.layout.key),
            _ => None,
        };
        let inquiry = Inquiry::begin(
            &hold.layout,
            &*client.runtime,
            now + client.config.member_timeout(hold.lease()),
            |member| claimed.binary_search(&member).is_ok(),
            |member, _| requests::release(&hold, member, count),
        );
        // The keeper's releases are sent after these. The first of two releases of one claim frees it, and the second
        // is answered "not yours". If the keeper's came first, the user would learn that the lock was lost.
        client.keeper.leave(now, orphans);
        Ok(Some(Releasing {
            client,
            hold,
            count,
            began: now,
            told: 0,
            first_replied: None,
            answers,
            heard_before,
            inquiry,
        }))
    }

    fn hear(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Releasing {
            client,
            hold,
            count,
            told,
            first_replied,
            heard_before,
            inquiry,
            ..
        } = self;
        inquiry.poll(cx, &*client.runtime, |confirming, member, at, reply| {
            let Reply::Release(reply) = reply else {
                confirming.handle_failed(member);
                return;
            };
            if member.index() == 0 {
                *first_replied = Some(at);
            }
            confirming.handle_released(member, *reply);
            if let ReleaseReply::Freed { told: others } = *reply {
                *told = others.max(*told);
                if let Some(before) = heard_before {
                    client
                        .keeper
                        .contended()
                        .freed(&hold.layout.key, member, before);
                }
            }
            if *count == 0 {
                if *reply == ReleaseReply::NotYours && hold.is_unanswered_on(member) {
                    let orphan = CleanUp::of(hold, member, at, None);
                    client.keeper.leave(at, vec![orphan.with_reply(at, *reply)]);
                }
                hold.gone_from(member);
            } else if *reply == ReleaseReply::NotYours {
                hold.not_yours(at, member, at);
                client.keeper.reschedule(hold);
            }
        })
    }

    fn end(&self) -> Result<(), ReleaseError> {
        let names = || self.hold.layout.title();
        match self.inquiry.outcome() {
            Confirmation::Confirmed => {
                if self.count == 0 {
                    let Client {
                        keeper, runtime, ..
                    } = &*self.client;
                    let now = runtime.now();
                    let took = now.since(self.began);
                    let key = &self.hold.layout.key;
                    let shown = Shown {
                        told: self.told,
                        answers: self.answers,
                        first_took: self.first_replied.map(|at| at.since(self.began)),
                    };
                    keeper.contended().released(now, key, took, shown);
                }
                Ok(())
            }
            // A releases one guard of two, and B releases the last one. If B's release reaches the nodes first, they
            // answer A's with "not yours". Both got what they wanted, so this is no error.
            Confirmation::NotHeld if self.count != 0 && self.hold.was_released() => Ok(()),
            Confirmation::NotHeld => Err(ReleaseError::NotHeld { names: names() }),
            Confirmation::Unconfirmed | Confirmation::Pending => {
                let now = self.client.now();
                let nodes = self.inquiry.reports(&self.hold.layout, now);
                telemetry::release_unconfirmed(&*self.hold.layout, self.hold.owner, &nodes);
                let names = names();
                Err(ReleaseError::Unconfirmed { names, nodes })
            }
        }
    }

    /// Passes the members that did not confirm to the keeper.
    fn hand_over(&mut self) {
        if self.count != 0 {
            return;
        }
        let failed = self.inquiry.take_failed();
        let unanswered = self.inquiry.take_unanswered();
        if failed.is_empty() && unanswered.is_empty() {
            return;
        }
        let now = self.client.now();
        let orphan = |member| {
            let orphan = CleanUp::of(&self.hold, member, now, None);
            self.hold.gone_from(member);
            orphan
        };
        let failed = failed.into_iter().map(orphan);
        let clock = &*self.client.runtime;
        let unanswered = unanswered
            .into_iter()
            .map(|(member, call)| orphan(member).with_release(now, call, clock));
        let orphans = failed.chain(unanswered).collect();
        self.client.keeper.leave(now, orphans);
    }
}

/// Reads the answers that were missing when the round was won. Members that still have not answered are sent a
/// release behind the acquire; the keeper waits for their answers.
fn hear_late(client: &Client, hold: &Arc<Hold>) -> Vec<CleanUp> {
    let clock = &*client.runtime;
    let mut orphans = Vec::new();
    for mut late in hold.take_late() {
        if let Poll::Ready(received) = late.poll(clock) {
            let (asked, sent) = late.asked(hold);
            late::answered(&asked, sent, &received);
            continue;
        }
        let now = clock.now();
        let member = late.member;
        let mut orphan = CleanUp::of(hold, member, now, Some(late.call));
        // If the hold may have a claim there from another acquire, the hold's own release covers it.
        if !hold.may_stand_on(member) {
            orphan.send_release(now, clock);
        }
        orphans.push(orphan);
    }
    orphans
}

impl Future for Releasing {
    type Output = Result<(), ReleaseError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.hear(cx).map(|()| this.end())
    }
}

impl Drop for Releasing {
    fn drop(&mut self) {
        self.hand_over();
    }
}
