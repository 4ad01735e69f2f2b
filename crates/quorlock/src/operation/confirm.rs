//! Re-entry and extension: the members confirm that this owner still has the claim.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::lease::Lease;
use quorlock_core::message::{Renew, RenewReply, Reply, Request};
use quorlock_core::release::Confirmation;
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::time::Time;

use crate::error::ConfirmError;
use crate::operation::inquiry::Inquiry;
use crate::shared::client::Client;
use crate::shared::hold::{Hold, requests};

/// A re-entry or extension in progress.
pub(crate) struct Confirm {
    client: Arc<Client>,
    hold: Arc<Hold>,
    lease: Lease,
    sent: Time,
    inquiry: Inquiry,
}

impl Confirm {
    /// Sends renewals that keep the claims for `lease`, or for the hold's own lease if that is longer or `lease` is
    /// `None`.
    pub(crate) fn begin(
        client: Arc<Client>,
        hold: Arc<Hold>,
        lease: Option<Lease>,
    ) -> Result<Self, ConfirmError> {
        // Read the clock before any request leaves. The nodes count the lease from a later moment, so A's new term
        // ends before the claims do. With a later reading A could rely on the lock while a node already grants it to B.
        let sent = client.now();
        if let Some(lost) = lost(hold.status(sent)) {
            let names = hold.layout.title();
            return Err(ConfirmError::Lost { names, lost });
        }
        let stated = hold.state_lease(lease);
        let lease = stated.lease;
        let inquiry = Inquiry::begin(
            &hold.layout,
            &*client.runtime,
            sent + client.config.member_timeout(lease),
            |member| hold.counts(member),
            |member, place| {
                Request::Renew(Renew {
                    mode: place.mode,
                    claims: vec![requests::claim(&hold, member, stated)],
                    retention: place.node.party.retention,
                })
            },
        );
        Ok(Confirm {
            client,
            hold,
            lease,
            sent,
            inquiry,
        })
    }

    /// Ends the confirmation at `end`, if that is earlier than its deadline.
    pub(crate) fn until(mut self, end: Time) -> Self {
        self.inquiry.end_by(end);
        self
    }

    fn hear(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Confirm {
            client,
            hold,
            lease,
            sent,
            inquiry,
        } = self;
        inquiry.poll(cx, &*client.runtime, |confirming, member, at, reply| {
            if let Reply::Renew(replies) = reply {
                let reply = replies.first().copied().unwrap_or(RenewReply::NotYours);
                hold.renewed(at, member, *sent, *lease, reply);
                confirming.handle_renewed(member, reply);
            } else {
                confirming.handle_failed(member);
            }
        })
    }

    fn end(&self) -> Result<(), ConfirmError> {
        let names = self.hold.layout.title();
        if let Some(lost) = lost(self.hold.status(self.client.now())) {
            return Err(ConfirmError::Lost { names, lost });
        }
        match self.inquiry.outcome() {
            Confirmation::Confirmed => Ok(()),
            Confirmation::NotHeld | Confirmation::Unconfirmed | Confirmation::Pending => {
                let now = self.client.now();
                let nodes = self.inquiry.reports(&self.hold.layout, now);
                Err(ConfirmError::Unconfirmed { names, nodes })
            }
        }
    }
}

/// How the hold was lost; `None` if it is held.
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
        this.hear(cx).map(|()| this.end())
    }
}

impl Drop for Confirm {
    fn drop(&mut self) {
        // A reply may have shortened the hold's validity, while the keeper waits for the old end: without this call
        // a loss would be reported late.
        self.client.keeper.reschedule(&self.hold);
    }
}
