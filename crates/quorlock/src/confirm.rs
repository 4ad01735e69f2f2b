//! Asking the members of a hold whether it is still ours: re-entry and extension.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::lease::Lease;
use quorlock_core::message::{Renew, RenewReply, Reply, Request};
use quorlock_core::quorum::MemberId;
use quorlock_core::release::{Confirmation, Confirming};
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::time::Time;
use quorlock_core::transport::TransportError;

use crate::calls::Calls;
use crate::client::Client;
use crate::error::ConfirmError;
use crate::hold::Hold;
use crate::runtime::Timer;

/// A question under way.
pub(crate) struct Confirm {
    client: Arc<Client>,
    hold: Arc<Hold>,
    lease: Lease,
    sent: Time,
    confirming: Confirming,
    calls: Calls<MemberId>,
    failed: Vec<(MemberId, TransportError)>,
    deadline: Time,
    timer: Box<dyn Timer>,
}

impl Confirm {
    /// Asks for the hold to be kept at its count for `lease` (the one it has if that is longer or `None`).
    pub(crate) fn begin(
        client: Arc<Client>,
        hold: Arc<Hold>,
        lease: Option<Lease>,
    ) -> Result<Self, ConfirmError> {
        let sent = client.now();
        if let Some(lost) = lost(hold.status(sent)) {
            let names = hold.layout.title();
            return Err(ConfirmError::Lost { names, lost });
        }
        let stated = hold.state_lease(lease);
        let lease = stated.lease;
        let members = hold.layout.members.clone();
        let confirming = Confirming::new(members, |member| hold.counts(member));
        let mut calls = Calls::of(hold.layout.members.len());
        for (member, place) in hold.layout.all() {
            if confirming.is_unanswered(member) {
                let claims = vec![hold.claim(member, stated)];
                let retention = place.node.party.retention;
                calls.push(
                    member,
                    place.node.call(Request::Renew(Renew {
                        mode: place.mode,
                        claims,
                        retention,
                    })),
                );
            }
        }
        Ok(Confirm {
            deadline: sent + client.config.member_timeout(lease),
            timer: client.runtime.timer(),
            client,
            hold,
            lease,
            sent,
            confirming,
            calls,
            failed: Vec::new(),
        })
    }

    /// The same with an end at this time, if that is earlier.
    pub(crate) fn until(mut self, end: Time) -> Self {
        self.deadline = self.deadline.min(end);
        self
    }

    fn hear(&mut self, cx: &mut Context<'_>) {
        let Confirm {
            calls,
            confirming,
            failed,
            hold,
            client,
            sent,
            lease,
            ..
        } = self;
        let clock = &*client.runtime;
        calls.poll(cx, clock, |member, received| match received.result {
            Ok(Reply::Renew(replies)) => {
                let reply = replies.first().copied().unwrap_or(RenewReply::NotYours);
                hold.renewed(received.at, member, *sent, *lease, reply);
                confirming.handle_renewed(member, reply);
            }
            Ok(_) => confirming.handle_failed(member),
            Err(error) => {
                confirming.handle_failed(member);
                failed.push((member, error));
            }
        });
    }

    fn end(&mut self) -> Result<(), ConfirmError> {
        let names = self.hold.layout.title();
        if let Some(lost) = lost(self.hold.status(self.client.now())) {
            return Err(ConfirmError::Lost { names, lost });
        }
        match self.confirming.outcome() {
            Confirmation::Confirmed => Ok(()),
            Confirmation::NotHeld | Confirmation::Unconfirmed | Confirmation::Pending => {
                let is_late = self.deadline <= self.client.now();
                let is_silent = |member| is_late && self.confirming.is_unanswered(member);
                let nodes = self.hold.layout.reports(&self.failed, is_silent, |_| None);
                Err(ConfirmError::Unconfirmed { names, nodes })
            }
        }
    }
}

/// How a hold in this state ended.
fn lost(status: Status) -> Option<Lost> {
    match status {
        Status::Held => None,
        Status::Releasing => Some(Lost::Released),
        Status::Lost(lost) => Some(lost),
    }
}

impl Future for Confirm {
    type Output = Result<(), ConfirmError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.hear(cx);
        let is_pending = this.confirming.outcome() == Confirmation::Pending;
        if is_pending && this.timer.poll_until(cx, this.deadline).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(this.end())
    }
}

impl Drop for Confirm {
    fn drop(&mut self) {
        // What was heard may have shortened the hold.
        self.client.keeper.reschedule(&self.hold);
    }
}
