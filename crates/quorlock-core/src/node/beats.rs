//! The beats beside the claims.

use super::{Held, Key, Keys};
use crate::beat::{Beat, Keep};
use crate::lease::Lease;
use crate::message::{Acquire, AcquireReply};
use crate::owner::OwnerId;
use crate::time::WallMillis;
use crate::transport::Cause;

impl Keys {
    /// An acquire of a plain lock that perhaps replaces a claim, and leaves a beat.
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
            self.claim = None;
        }
        let mut reply = self.acquire(now, ask)?;
        match &mut reply {
            AcquireReply::Granted { .. } => {
                self.leave_beat(now, ask.owner, ask.lease, keep);
            }
            AcquireReply::Refused { beat, .. } => *beat = self.beat(now),
            AcquireReply::Queued { .. } | AcquireReply::OtherMode(_) => {}
        }
        Ok(reply)
    }

    /// Leaves the larger of two numbers, for as long as the claim is there.
    pub(super) fn leave_beat(&mut self, now: WallMillis, owner: OwnerId, lease: Lease, keep: Keep) {
        let before = self.stored_beat(now);
        let beat = match before.filter(|beat| beat.owner == owner && keep.number <= beat.number) {
            Some(before) => before,
            None => Beat {
                owner,
                number: keep.number,
                lease_millis: lease.millis(),
            },
        };
        let kept = now.plus(lease.millis().saturating_add(keep.margin_millis));
        let claim = self.claim.as_ref().and_then(|key| key.expires);
        let expires = Some(claim.map_or(kept, |claim| claim.max(kept)));
        let value = beat;
        self.beat = Some(Key { value, expires });
    }

    /// The beat of a name goes with its claim.
    pub(super) fn end_beat(&mut self, owner: OwnerId) {
        self.beat.take_if(|key| key.value.owner == owner);
    }

    /// The beat, whosever the name is.
    pub(super) fn stored_beat(&self, now: WallMillis) -> Option<Beat> {
        let key = self.beat.as_ref().filter(|key| key.is_there(now));
        key.map(|key| key.value)
    }

    /// The beat of the claim.
    pub(super) fn beat(&self, now: WallMillis) -> Option<Beat> {
        let beat = self.stored_beat(now)?;
        let is_its =
            |held: &Held| matches!(held, Held::Plain { owner, .. } if *owner == beat.owner);
        self.held(now).is_some_and(is_its).then_some(beat)
    }
}
