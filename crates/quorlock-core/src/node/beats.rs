//! The beats beside the claims.

use super::{Held, Key, Node};
use crate::beat::{Beat, Keep};
use crate::lease::Lease;
use crate::message::{Acquire, AcquireReply};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;
use crate::transport::Cause;

impl Node {
    /// An acquire of a plain lock that perhaps replaces a claim, and leaves a beat.
    pub(super) fn beating_acquire(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
    ) -> Result<AcquireReply, Cause> {
        let Some(keep) = ask.keep else {
            return self.acquire(now, ask);
        };
        let shown = self.beat(now, &ask.name);
        if shown.is_some_and(|beat| ask.replaces == Some(beat) && beat.owner != ask.owner)
            && !self.has_queue(now, &ask.name)
        {
            self.claims.remove(&ask.name);
        }
        let mut reply = self.acquire(now, ask)?;
        match &mut reply {
            AcquireReply::Granted { .. } => {
                self.leave_beat(now, &ask.name, ask.owner, ask.lease, keep);
            }
            AcquireReply::Refused { beat, .. } => *beat = shown,
            AcquireReply::Queued { .. } | AcquireReply::OtherMode(_) => {}
        }
        Ok(reply)
    }

    /// Leaves the larger of two numbers, for as long as the claim is there.
    pub(super) fn leave_beat(
        &mut self,
        now: WallMillis,
        name: &Name,
        owner: OwnerId,
        lease: Lease,
        keep: Keep,
    ) {
        let before = self.stored_beat(now, name);
        let beat = match before.filter(|beat| beat.owner == owner && keep.number <= beat.number) {
            Some(before) => before,
            None => Beat {
                owner,
                number: keep.number,
                lease_millis: lease.millis(),
            },
        };
        let kept = now.plus(lease.millis().saturating_add(keep.margin_millis));
        let claim = self.claims.get(name).and_then(|key| key.expires);
        let expires = Some(claim.map_or(kept, |claim| claim.max(kept)));
        let key = Key {
            value: beat,
            expires,
        };
        self.beats.insert(name.clone(), key);
    }

    /// The beat of a name goes with its claim.
    pub(super) fn end_beat(&mut self, name: &Name, owner: OwnerId) {
        if self
            .beats
            .get(name)
            .is_some_and(|key| key.value.owner == owner)
        {
            self.beats.remove(name);
        }
    }

    /// The beat that is stored for a name at `now`, whosever the name is.
    #[must_use]
    pub fn stored_beat(&self, now: WallMillis, name: &Name) -> Option<Beat> {
        let key = self.beats.get(name).filter(|key| key.is_there(now));
        key.map(|key| key.value)
    }

    /// The beat of the claim that stands under a name at `now`, if it has one.
    #[must_use]
    pub fn beat(&self, now: WallMillis, name: &Name) -> Option<Beat> {
        let beat = self.stored_beat(now, name)?;
        let is_held = |held| matches!(held, Held::Plain { owner, .. } if owner == beat.owner);
        self.held(now, name)
            .is_some_and(|(held, _)| is_held(held))
            .then_some(beat)
    }
}
