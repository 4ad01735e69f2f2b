//! Claims of fair locks: plain claims, and a queue of waiters.
//!
//! A waiter that does not repeat its request within the time that it stated is considered dead. Dead waiters are
//! dropped by the next request once they are at the head of the queue. All times are by the clock of the node.

use super::Published;
use super::keys::{Key, Keys, Queue};
use super::plain::{self, Obstacle};
use crate::failure::Cause;
use crate::message::{
    Acquire, AcquireReply, Channel, QueuePlace, Release, ReleaseReply, Ttl, Wake,
};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;

pub(super) fn acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
    place: QueuePlace,
    published: &mut Published,
) -> Result<AcquireReply, Cause> {
    let obstacle = match plain::look(keys, now, ask)? {
        Ok(obstacle) => obstacle,
        Err(mode) => return Ok(AcquireReply::OtherMode(mode)),
    };
    if matches!(obstacle, Obstacle::Ours) {
        return Ok(plain::grant(keys, now, ask, &obstacle, ask.lease.millis()));
    }
    let has_dropped = drop_dead(keys, now);
    let first = keys.first(now);
    let is_free = matches!(obstacle, Obstacle::None);
    let is_next = first.is_none_or(|(owner, _)| owner == ask.owner);
    if is_free && is_next {
        leave_queue(keys, now, ask.owner);
        return Ok(plain::grant(keys, now, ask, &obstacle, ask.lease.millis()));
    }
    let ttl = match first {
        Some((_, alive)) if is_free => Ttl::Millis(alive.0.saturating_sub(now.0)),
        _ => keys.ttl(now),
    };
    let reply = match place {
        QueuePlace::None => AcquireReply::Refused { ttl, version: None },
        QueuePlace::Kept { millis } => {
            keep_place(keys, now, ask, millis);
            AcquireReply::Queued { ttl }
        }
    };
    if is_free && has_dropped {
        wake_first(keys, now, &ask.name, published);
    }
    Ok(reply)
}

pub(super) fn release(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Release,
    published: &mut Published,
) -> Result<ReleaseReply, Cause> {
    let reply = plain::lower(keys, now, ask)?;
    if reply == ReleaseReply::Kept || ask.count != 0 {
        return Ok(reply);
    }
    let has_dropped = drop_dead(keys, now);
    let first = keys.first(now);
    let was_first = first.is_some_and(|(owner, _)| owner == ask.owner);
    let has_left = leave_queue(keys, now, ask.owner);
    drop_dead(keys, now);
    let is_free = keys.claim(now).is_none();
    if is_free && (reply == ReleaseReply::FREED || was_first || has_dropped) {
        wake_first(keys, now, &ask.name, published);
    }
    Ok(match reply {
        ReleaseReply::NotYours if has_left => ReleaseReply::Left,
        other => other,
    })
}

/// Drops dead waiters from the head of the queue. Returns whether there were any.
pub(super) fn drop_dead(keys: &mut Keys, now: WallMillis) -> bool {
    let Some(key) = keys.queue.as_mut().filter(|key| key.is_there(now)) else {
        return false;
    };
    let before = key.value.len();
    while key.value.front().is_some_and(|(_, alive)| *alive < now) {
        key.value.pop_front();
    }
    let has_dropped = key.value.len() < before;
    if key.value.is_empty() {
        keys.queue = None;
    }
    has_dropped
}

/// Drops the first waiter in the queue, and dead waiters behind it. Returns whether there was one.
pub(super) fn drop_first(keys: &mut Keys, now: WallMillis) -> bool {
    let first = keys.first(now);
    let has_left = first.is_some_and(|(owner, _)| leave_queue(keys, now, owner));
    drop_dead(keys, now);
    has_left
}

/// Puts the owner at the end of the queue, unless it is already in it, and extends the time for which it is considered
/// alive.
fn keep_place(keys: &mut Keys, now: WallMillis, ask: &Acquire, millis: u64) {
    let alive = now.plus(millis);
    let key = keys.queue.get_or_insert_with(|| Key {
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

fn leave_queue(keys: &mut Keys, now: WallMillis, owner: OwnerId) -> bool {
    let Some(key) = keys.queue.as_mut().filter(|key| key.is_there(now)) else {
        return false;
    };
    let before = key.value.len();
    key.value.retain(|(waiting, _)| *waiting != owner);
    let has_left = key.value.len() < before;
    if key.value.is_empty() {
        keys.queue = None;
    }
    has_left
}

fn wake_first(keys: &Keys, now: WallMillis, name: &Name, published: &mut Published) {
    *published = first_waiting(keys, now, name).map(|channel| (channel, Wake::Unlocked));
}

/// Returns the channel on which the first waiter in the queue listens.
pub(super) fn first_waiting(keys: &Keys, now: WallMillis, name: &Name) -> Option<Channel> {
    let (owner, _) = keys.first(now)?;
    Some(Channel::Waiter(name.clone(), owner))
}
