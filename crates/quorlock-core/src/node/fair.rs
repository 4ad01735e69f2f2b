//! Claims of fair locks: plain claims, and a queue of those who wait for one.
//!
//! A waiter that is not heard of for as long as it said it would be is dead. The dead are dropped when they come to
//! the head of the queue, by whoever asks next. All of it goes by the clock of the node.

use std::collections::VecDeque;

use super::plain::Obstacle;
use super::{Key, Keys, Published};
use crate::failure::Cause;
use crate::message::{Acquire, AcquireReply, Channel, Place, Release, ReleaseReply, Ttl, Wake};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;

/// Who waits, and until when it is taken to be alive; the first one is next.
pub(super) type Queue = VecDeque<(OwnerId, WallMillis)>;

impl Keys {
    pub(super) fn fair_acquire(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
        place: Place,
        published: &mut Published,
    ) -> Result<AcquireReply, Cause> {
        let obstacle = match self.look(now, ask)? {
            Ok(obstacle) => obstacle,
            Err(mode) => return Ok(AcquireReply::OtherMode(mode)),
        };
        if matches!(obstacle, Obstacle::Ours) {
            return Ok(self.grant(now, ask, &obstacle, ask.lease.millis()));
        }
        let has_dropped = self.drop_dead(now);
        let first = self.first(now);
        let is_free = matches!(obstacle, Obstacle::None);
        let is_next = first.is_none_or(|(owner, _)| owner == ask.owner);
        if is_free && is_next {
            self.leave_queue(now, ask.owner);
            return Ok(self.grant(now, ask, &obstacle, ask.lease.millis()));
        }
        let ttl = match first {
            Some((_, alive)) if is_free => Ttl::Millis(alive.0.saturating_sub(now.0)),
            _ => self.ttl(now),
        };
        let reply = match place {
            Place::None => AcquireReply::Refused { ttl, beat: None },
            Place::Kept { millis } => {
                self.keep_place(now, ask, millis);
                AcquireReply::Queued { ttl }
            }
        };
        if is_free && has_dropped {
            self.wake_first(now, &ask.name, published);
        }
        Ok(reply)
    }

    pub(super) fn fair_release(
        &mut self,
        now: WallMillis,
        ask: &Release,
        published: &mut Published,
    ) -> Result<ReleaseReply, Cause> {
        let reply = self.lower(now, ask)?;
        if reply == ReleaseReply::Kept || ask.count != 0 {
            return Ok(reply);
        }
        let has_dropped = self.drop_dead(now);
        let first = self.first(now);
        let was_first = first.is_some_and(|(owner, _)| owner == ask.owner);
        let has_left = self.leave_queue(now, ask.owner);
        let is_free = self.claim(now).is_none();
        if is_free && (reply == ReleaseReply::Freed || was_first || has_dropped) {
            self.wake_first(now, &ask.name, published);
        }
        Ok(match reply {
            ReleaseReply::NotYours if has_left => ReleaseReply::Left,
            other => other,
        })
    }

    /// Drops the dead at the head of the queue; whether there were any.
    pub(super) fn drop_dead(&mut self, now: WallMillis) -> bool {
        let Some(key) = self.queue.as_mut().filter(|key| key.is_there(now)) else {
            return false;
        };
        let before = key.value.len();
        while key.value.front().is_some_and(|(_, alive)| *alive < now) {
            key.value.pop_front();
        }
        let has_dropped = key.value.len() < before;
        if key.value.is_empty() {
            self.queue = None;
        }
        has_dropped
    }

    /// Drops the first in the queue; whether there was one.
    pub(super) fn drop_first(&mut self, now: WallMillis) -> bool {
        let first = self.first(now);
        first.is_some_and(|(owner, _)| self.leave_queue(now, owner))
    }

    /// Puts the owner at the end of the queue, unless it stands in it, and notes that it is alive.
    fn keep_place(&mut self, now: WallMillis, ask: &Acquire, millis: u64) {
        let alive = now.plus(millis);
        let key = self.queue.get_or_insert_with(|| Key {
            value: Queue::new(),
            expires: Some(alive),
        });
        if !key.is_there(now) {
            key.value.clear();
        }
        key.extend(now, millis);
        match key.value.iter_mut().find(|(owner, _)| *owner == ask.owner) {
            Some((_, until)) => *until = alive.max(*until),
            None => key.value.push_back((ask.owner, alive)),
        }
    }

    fn leave_queue(&mut self, now: WallMillis, owner: OwnerId) -> bool {
        let Some(key) = self.queue.as_mut().filter(|key| key.is_there(now)) else {
            return false;
        };
        let before = key.value.len();
        key.value.retain(|(waiting, _)| *waiting != owner);
        let has_left = key.value.len() < before;
        if key.value.is_empty() {
            self.queue = None;
        }
        has_left
    }

    fn wake_first(&self, now: WallMillis, name: &Name, published: &mut Published) {
        *published = self
            .first_waiting(now, name)
            .map(|channel| (channel, Wake::Unlocked));
    }

    /// Where the first in the queue listens.
    pub(super) fn first_waiting(&self, now: WallMillis, name: &Name) -> Option<Channel> {
        let (owner, _) = self.first(now)?;
        Some(Channel::Waiter(name.clone(), owner))
    }

    fn first(&self, now: WallMillis) -> Option<(OwnerId, WallMillis)> {
        let key = self.queue.as_ref().filter(|key| key.is_there(now))?;
        key.value.front().copied()
    }

    pub(super) fn has_queue(&self, now: WallMillis) -> bool {
        self.queue.as_ref().is_some_and(|key| key.is_there(now))
    }

    /// Who stands in the queue, and for how long each is taken to be alive yet.
    pub(super) fn queue(&self, now: WallMillis) -> impl Iterator<Item = (OwnerId, Ttl)> {
        let key = self.queue.as_ref().filter(|key| key.is_there(now));
        let waiting = key.into_iter().flat_map(|key| key.value.iter());
        waiting.map(move |(owner, alive)| (*owner, Ttl::Millis(alive.0.saturating_sub(now.0))))
    }

    /// What is left of the claim.
    pub(super) fn ttl(&self, now: WallMillis) -> Ttl {
        let claim = self.claim(now);
        claim.map_or(Ttl::Millis(0), |key| key.ttl(now))
    }
}
