//! Claims of plain locks: one owner at a time.

use super::Published;
use super::held::Held;
use super::keys::Keys;
use crate::failure::Cause;
use crate::message::{
    Acquire, AcquireReply, Channel, Claim, Freshness, Mode, Release, ReleaseReply, RenewReply,
    Retention, Wake,
};
use crate::time::WallMillis;

/// What prevents a claim, if anything.
pub(super) enum Obstacle {
    /// Nothing prevents it: the name is free.
    None,
    /// Nothing prevents it: the claim already belongs to the owner.
    Ours,
    /// Another owner has a claim.
    Theirs,
}

pub(super) fn acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
) -> Result<AcquireReply, Cause> {
    let obstacle = match look(keys, now, ask)? {
        Ok(obstacle) => obstacle,
        Err(mode) => return Ok(AcquireReply::OtherMode(mode)),
    };
    match obstacle {
        Obstacle::Ours => {}
        // Otherwise a plain lock would overtake the waiters in the queue of the fair lock.
        _ if keys.has_queue(now) => return Ok(AcquireReply::OtherMode(Mode::Fair)),
        Obstacle::None => {}
        Obstacle::Theirs => {
            let ttl = keys.ttl(now);
            return Ok(AcquireReply::Refused { ttl, version: None });
        }
    }
    Ok(grant(keys, now, ask, &obstacle, ask.kept_millis()))
}

/// Returns whose claim is under the name, or its mode if it is not a plain lock.
pub(super) fn look(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
) -> Result<Result<Obstacle, Mode>, Cause> {
    let Some(key) = keys.claim_mut(now) else {
        return Ok(Ok(Obstacle::None));
    };
    match &key.value {
        Held::NotALock => Err(Cause::WrongType),
        Held::ReadWrite(held) => Ok(Err(held.mode())),
        // Already yours: A's request is executed a second time, because the network duplicated it or because A sent it
        // again after its reply was lost. A's own claim is no obstacle, and `grant` confirms it. If it were one, the
        // node would refuse A, and A would wait for its own claim until that expires.
        Held::Plain { owner, .. } if *owner == ask.owner => Ok(Ok(Obstacle::Ours)),
        Held::Plain { .. } => Ok(Ok(Obstacle::Theirs)),
    }
}

/// Records the claim for this time, when nothing prevents it.
pub(super) fn grant(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
    obstacle: &Obstacle,
    kept_millis: u64,
) -> AcquireReply {
    let (owner, count) = (ask.owner, ask.count);
    let held = Held::Plain { owner, count };
    let freshness = match obstacle {
        Obstacle::Ours => {
            // Never shorten the TTL: a delayed copy of A's acquire for 1 s may arrive after A's extension to 5 s.
            if let Some(key) = keys.claim_mut(now) {
                key.value = held;
                key.extend(now, kept_millis);
            }
            Freshness::AlreadyYours
        }
        _ => {
            keys.put(held, Some(now.plus(kept_millis)));
            Freshness::Anew
        }
    };
    let token = keys.hand_out(now, ask, freshness);
    AcquireReply::Granted { freshness, token }
}

pub(super) fn renew(
    keys: &mut Keys,
    now: WallMillis,
    claim: &Claim,
    retention: Retention,
) -> RenewReply {
    let Some(key) = keys.claim_mut(now) else {
        return RenewReply::NotYours;
    };
    match &mut key.value {
        Held::Plain { owner, count } if *owner == claim.owner => *count = claim.count,
        _ => return RenewReply::NotYours,
    }
    key.extend(now, claim.kept_millis());
    let reply = keys.carry(now, claim.token, retention, claim.kept_millis());
    if let Some(keep) = claim.keep {
        keys.set_version(claim.owner, claim.lease, keep);
    }
    reply
}

pub(super) fn release(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Release,
    published: &mut Published,
) -> Result<ReleaseReply, Cause> {
    let reply = lower(keys, now, ask)?;
    if reply == ReleaseReply::FREED {
        *published = Some((Channel::Lock(ask.name.clone()), Wake::Unlocked));
    }
    Ok(reply)
}

/// Sets the count of the owner's claim, and ends the claim at 0.
pub(super) fn lower(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Release,
) -> Result<ReleaseReply, Cause> {
    let Some(key) = keys.claim_mut(now) else {
        return Ok(ReleaseReply::NotYours);
    };
    match &mut key.value {
        Held::NotALock => Err(Cause::WrongType),
        Held::Plain { owner, count } if *owner == ask.owner => {
            if ask.count == 0 {
                keys.forget_claim();
                Ok(ReleaseReply::FREED)
            } else {
                *count = ask.count;
                Ok(ReleaseReply::Kept)
            }
        }
        Held::Plain { .. } | Held::ReadWrite(_) => Ok(ReleaseReply::NotYours),
    }
}
