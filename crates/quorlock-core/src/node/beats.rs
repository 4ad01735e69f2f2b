//! The beats of claims.

use super::{Held, Keys};
use crate::beat::{Beat, Keep};
use crate::failure::Cause;
use crate::lease::Lease;
use crate::message::{Acquire, AcquireReply};
use crate::owner::OwnerId;
use crate::time::WallMillis;

impl Keys {
    /// An acquire of a plain lock that perhaps replaces a claim, and gives its own a beat.
    pub(super) fn beating_acquire(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
    ) -> Result<AcquireReply, Cause> {
        let Some(keep) = ask.keep else {
            return self.acquire(now, ask);
        };
        let replaces = ask.replaces.filter(|beat| beat.owner != ask.owner);
        if replaces.is_some() && replaces == self.beat(now) && !self.has_queue(now) {
            self.forget_claim();
        }
        let mut reply = self.acquire(now, ask)?;
        match &mut reply {
            AcquireReply::Granted { .. } => self.set_beat(ask.owner, ask.lease, keep),
            AcquireReply::Refused { beat, .. } => *beat = self.beat(now),
            AcquireReply::Queued { .. } | AcquireReply::OtherMode(_) => {}
        }
        Ok(reply)
    }

    /// Gives the claim the beat with the larger of two numbers.
    pub(super) fn set_beat(&mut self, owner: OwnerId, lease: Lease, keep: Keep) {
        if self.beat.is_none_or(|before| before.number < keep.number) {
            self.beat = Some(keep.beat(owner, lease));
        }
    }

    /// The beat of the claim.
    pub(super) fn beat(&self, now: WallMillis) -> Option<Beat> {
        let is_plain = matches!(self.held(now), Some(Held::Plain { .. }));
        self.beat.filter(|_| is_plain)
    }
}
