//! Releasing a hold, with a report.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::message::{ReleaseReply, Reply};
use quorlock_core::quorum::MemberId;
use quorlock_core::release::{Confirmation, Confirming};
use quorlock_core::renewal::Status;
use quorlock_core::time::Time;
use quorlock_core::transport::TransportError;

use crate::calls::Calls;
use crate::client::Client;
use crate::error::ReleaseError;
use crate::hold::Hold;
use crate::keeper::Orphaned;
use crate::runtime::Timer;
use crate::telemetry;

/// A release under way. Dropped early, it goes on in the keeper.
pub(crate) struct Releasing {
    client: Arc<Client>,
    hold: Arc<Hold>,
    count: u32,
    confirming: Confirming,
    calls: Calls<MemberId>,
    failed: Vec<(MemberId, TransportError)>,
    deadline: Time,
    timer: Box<dyn Timer>,
}

impl Releasing {
    /// Gives up one guard of a hold: the last one frees it.
    ///
    /// # Errors
    /// [`ReleaseError::NotHeld`] when the hold is known to be lost already. Nothing is sent then: the keeper does
    /// what is left to do.
    pub(crate) fn begin(
        client: Arc<Client>,
        hold: Arc<Hold>,
    ) -> Result<Option<Self>, ReleaseError> {
        let now = client.now();
        let (count, status) = hold.leave(now);
        if count == 0 && status == Status::Held {
            client.keeper.forget(&hold);
        }
        match status {
            Status::Held => {}
            Status::Releasing => return Ok(None),
            // Also of a client that was closed: from then on the work was not protected, and after its runtime has ended
            // the claim may even stand yet.
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
        let mut calls = Calls::of(claimed.len());
        for member in &claimed {
            let call = hold
                .layout
                .place(*member)
                .node
                .call(hold.release_request(*member, count));
            calls.push(*member, call);
        }
        // What the keeper sends goes behind that: of two releases of one claim the first has the answer that counts.
        client.keeper.leave(now, orphans);
        Ok(Some(Releasing {
            confirming: Confirming::new(hold.layout.members.clone(), |m| {
                claimed.binary_search(&m).is_ok()
            }),
            calls,
            failed: Vec::new(),
            deadline: now + client.config.member_timeout(hold.lease()),
            timer: client.runtime.timer(),
            client,
            hold,
            count,
        }))
    }

    fn hear(&mut self, cx: &mut Context<'_>) {
        let Releasing {
            calls,
            confirming,
            failed,
            hold,
            count,
            client,
            ..
        } = self;
        let clock = &*client.runtime;
        calls.poll(cx, clock, |member, received| match received.result {
            Ok(Reply::Release(reply)) => {
                confirming.handle_released(member, reply);
                if *count == 0 {
                    hold.gone_from(member);
                } else if reply == ReleaseReply::NotYours {
                    hold.not_yours(received.at, member);
                    client.keeper.reschedule(hold);
                }
            }
            Ok(_) => confirming.handle_failed(member),
            Err(error) => {
                confirming.handle_failed(member);
                failed.push((member, error));
            }
        });
    }

    fn end(&mut self) -> Result<(), ReleaseError> {
        let names = || self.hold.layout.title();
        match self.confirming.outcome() {
            Confirmation::Confirmed => Ok(()),
            Confirmation::NotHeld => Err(ReleaseError::NotHeld { names: names() }),
            Confirmation::Unconfirmed | Confirmation::Pending => {
                let is_late = self.deadline <= self.client.now();
                let is_silent = |member| is_late && self.confirming.is_unanswered(member);
                let nodes = self.hold.layout.reports(&self.failed, is_silent, |_| None);
                telemetry::release_unconfirmed(&*self.hold.layout, self.hold.owner, &nodes);
                let names = names();
                Err(ReleaseError::Unconfirmed { names, nodes })
            }
        }
    }

    /// Leaves what is not confirmed to the keeper.
    fn hand_over(&mut self) {
        let is_settled = self.calls.is_empty() && self.failed.is_empty();
        if self.count != 0 || is_settled {
            return;
        }
        let now = self.client.now();
        let orphan = |member| {
            self.hold.gone_from(member);
            Orphaned::of(&self.hold, member, now, None)
        };
        let failed = self.failed.drain(..).map(|(member, _)| orphan(member));
        let calls = self.calls.drain();
        let unanswered = calls
            .map(|(member, call)| orphan(member).with_release(now, call, &*self.client.runtime));
        let orphans = failed.chain(unanswered).collect();
        self.client.keeper.leave(now, orphans);
    }
}

/// Takes in what the members say that had not answered when the round was won. Those that still have not are sent a
/// release behind the acquire, and are for the keeper to wait for.
fn hear_late(client: &Client, hold: &Arc<Hold>) -> Vec<Orphaned> {
    let clock = &*client.runtime;
    let mut orphans = Vec::new();
    for mut late in hold.take_late() {
        if let Poll::Ready(received) = late.poll(clock) {
            let (asked, sent) = late.asked(hold);
            asked.answered(sent, &received);
            continue;
        }
        let now = clock.now();
        let member = late.member;
        let mut orphan = Orphaned::of(hold, member, now, Some(late.call));
        // Where another acquire has left a claim, it is released with the others.
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
        this.hear(cx);
        if this.confirming.outcome() == Confirmation::Pending {
            if this.timer.poll_until(cx, this.deadline).is_pending() {
                return Poll::Pending;
            }
            let result = this.end();
            this.confirming.handle_timeout();
            return Poll::Ready(result);
        }
        Poll::Ready(this.end())
    }
}

impl Drop for Releasing {
    fn drop(&mut self) {
        self.hand_over();
    }
}
