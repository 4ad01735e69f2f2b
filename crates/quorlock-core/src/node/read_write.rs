//! Claims of read-write locks: any number of readers, or one writer.
//!
//! Each reader has its own lease in addition to the TTL of the whole key, so that live readers do not keep a dead one
//! alive. When no live owner is left, the name is free.

use super::Published;
use super::held::{Held, ReadWrite};
use super::keys::{Key, Keys};
use crate::failure::Cause;
use crate::fencing::Token;
use crate::message::{
    Acquire, AcquireReply, Channel, Claim, Freshness, MOST_READ_ENTRIES, Mode, Release,
    ReleaseReply, RenewReply, Retention, Ttl, Wake,
};
use crate::owner::OwnerId;
use crate::time::WallMillis;

pub(super) fn read_acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
    under: Option<OwnerId>,
) -> Result<AcquireReply, Cause> {
    let freshness = match keys.held(now) {
        None => {
            keys.put(Held::read(ask.owner, ask.count), Some(now));
            Freshness::Anew
        }
        Some(Held::NotALock) => return Err(Cause::WrongType),
        Some(Held::Plain { .. }) => return Ok(AcquireReply::OtherMode(Mode::Plain)),
        Some(Held::ReadWrite(held)) => {
            let writer = held.writer.map(|(owner, _)| owner);
            if writer.is_some() && writer != under {
                let ttl = keys.ttl(now);
                return Ok(AcquireReply::Refused { ttl, version: None });
            }
            match is_reading(keys, now, ask.owner) {
                true => Freshness::AlreadyYours,
                false => Freshness::Anew,
            }
        }
    };
    keep_reading(keys, now, ask.owner, ask.count, ask.kept_millis());
    // A reader gets no new token, but the token of the last writer.
    let token = keys.token(now).unwrap_or(Token(0));
    Ok(AcquireReply::Granted { freshness, token })
}

pub(super) fn write_acquire(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Acquire,
) -> Result<AcquireReply, Cause> {
    let freshness = match keys.held(now) {
        None => Freshness::Anew,
        Some(Held::NotALock) => return Err(Cause::WrongType),
        Some(Held::Plain { .. }) => return Ok(AcquireReply::OtherMode(Mode::Plain)),
        Some(Held::ReadWrite(held)) => match held.writer {
            Some((owner, _)) if owner == ask.owner => Freshness::AlreadyYours,
            None if !has_readers(keys, now) => Freshness::Anew,
            Some(_) => {
                let ttl = keys.ttl(now);
                return Ok(AcquireReply::Refused { ttl, version: None });
            }
            None => {
                // The TTL of the whole key may be longer than the lease of any reader, because a reader with a longer
                // lease has left.
                let longest = reading(keys, now).max().unwrap_or(Ttl::Unbounded);
                let ttl = keys.ttl(now).min(longest);
                return Ok(AcquireReply::Refused { ttl, version: None });
            }
        },
    };
    match freshness {
        Freshness::Anew => {
            let expires = now.plus(ask.kept_millis());
            keys.put(Held::write(ask.owner, ask.count), Some(expires));
        }
        Freshness::AlreadyYours => {
            keep_writing(keys, now, ask.owner, ask.count, ask.kept_millis());
        }
    }
    let token = keys.hand_out(now, ask, freshness);
    Ok(AcquireReply::Granted { freshness, token })
}

pub(super) fn renew_read(keys: &mut Keys, now: WallMillis, claim: &Claim) -> RenewReply {
    if !is_reading(keys, now, claim.owner) {
        return RenewReply::NotYours;
    }
    let lease = claim.kept_millis();
    keep_reading(keys, now, claim.owner, claim.count, lease);
    let token = claim.token;
    RenewReply::AlreadyYours { token }
}

pub(super) fn renew_write(
    keys: &mut Keys,
    now: WallMillis,
    claim: &Claim,
    retention: Retention,
) -> RenewReply {
    let lease = claim.kept_millis();
    if !keep_writing(keys, now, claim.owner, claim.count, lease) {
        return RenewReply::NotYours;
    }
    keys.carry(now, claim.token, retention, lease)
}

pub(super) fn read_release(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Release,
    published: &mut Published,
) -> Result<ReleaseReply, Cause> {
    let Some(held) = read_write(keys, now)? else {
        return Ok(ReleaseReply::NotYours);
    };
    if !held.readers.contains_key(&ask.owner) {
        return Ok(ReleaseReply::NotYours);
    }
    if ask.count != 0 {
        // A reader whose lease has run out cannot become a reader again by lowering its count.
        if !is_reading(keys, now, ask.owner) {
            return Ok(ReleaseReply::NotYours);
        }
        keep_reading(keys, now, ask.owner, ask.count, 0);
        return Ok(ReleaseReply::Kept);
    }
    if let Some(held) = read_write(keys, now)? {
        held.readers.remove(&ask.owner);
    }
    keys.reads.remove(&ask.owner);
    if is_wanted(keys, now)? {
        return Ok(ReleaseReply::Left);
    }
    keys.forget_claim();
    *published = Some((Channel::ReadWrite(ask.name.clone()), Wake::Unlocked));
    Ok(ReleaseReply::FREED)
}

pub(super) fn write_release(
    keys: &mut Keys,
    now: WallMillis,
    ask: &Release,
    published: &mut Published,
) -> Result<ReleaseReply, Cause> {
    let Some(held) = read_write(keys, now)? else {
        return Ok(ReleaseReply::NotYours);
    };
    match &mut held.writer {
        Some((owner, count)) if *owner == ask.owner => {
            if ask.count != 0 {
                *count = ask.count;
                return Ok(ReleaseReply::Kept);
            }
        }
        _ => return Ok(ReleaseReply::NotYours),
    }
    held.writer = None;
    // Even if the writer remains a reader, others may read from now on.
    *published = Some((Channel::ReadWrite(ask.name.clone()), Wake::ReadersMayEnter));
    if is_wanted(keys, now)? {
        return Ok(ReleaseReply::Left);
    }
    keys.forget_claim();
    Ok(ReleaseReply::FREED)
}

/// Returns the claims under a name, if it is a read-write lock.
fn read_write(keys: &mut Keys, now: WallMillis) -> Result<Option<&mut ReadWrite>, Cause> {
    match keys.claim_mut(now).map(|key| &mut key.value) {
        Some(Held::ReadWrite(held)) => Ok(Some(held)),
        Some(Held::NotALock) => Err(Cause::WrongType),
        Some(Held::Plain { .. }) | None => Ok(None),
    }
}

/// Returns whether there is a writer or a live reader.
fn is_wanted(keys: &mut Keys, now: WallMillis) -> Result<bool, Cause> {
    let writes = read_write(keys, now)?.is_some_and(|held| held.writer.is_some());
    Ok(writes || has_readers(keys, now))
}

/// Records a reader at this count, for at least this time.
fn keep_reading(keys: &mut Keys, now: WallMillis, owner: OwnerId, count: u32, lease_millis: u64) {
    let Some(key) = keys.claim.as_mut() else {
        return;
    };
    if let Held::ReadWrite(held) = &mut key.value {
        held.readers.insert(owner, count);
    }
    key.extend(now, lease_millis);
    let expires = Some(now.plus(lease_millis));
    let lease = keys.reads.entry(owner);
    let lease = lease.or_insert(Key { value: (), expires });
    if !lease.is_there(now) {
        lease.expires = expires;
    }
    lease.extend(now, lease_millis);
}

/// Keeps the writer's claim at this count, for at least this time. Returns whether the claim belongs to the owner.
fn keep_writing(
    keys: &mut Keys,
    now: WallMillis,
    owner: OwnerId,
    count: u32,
    lease_millis: u64,
) -> bool {
    let Some(key) = keys.claim_mut(now) else {
        return false;
    };
    match &mut key.value {
        Held::ReadWrite(ReadWrite {
            writer: Some((writer, at)),
            ..
        }) if *writer == owner => *at = count,
        _ => return false,
    }
    key.extend(now, lease_millis);
    true
}

fn is_reading(keys: &Keys, now: WallMillis, owner: OwnerId) -> bool {
    let lease = keys.reads.get(&owner);
    let is_recorded = match keys.held(now) {
        Some(Held::ReadWrite(held)) => held.readers.contains_key(&owner),
        _ => false,
    };
    is_recorded && lease.is_some_and(|lease| lease.is_there(now))
}

fn has_readers(keys: &Keys, now: WallMillis) -> bool {
    reading(keys, now).next().is_some()
}

/// Returns the rest of the lease of each live reader. A reader with more holds than a Quorlock client can have is
/// assumed to live as long as the whole key, and its holds are not read one by one.
pub(super) fn reading(keys: &Keys, now: WallMillis) -> impl Iterator<Item = Ttl> {
    let readers = match keys.held(now) {
        Some(Held::ReadWrite(held)) => Some(&held.readers),
        _ => None,
    };
    let strange = readers.into_iter().flatten();
    let strange = strange.filter(|(_, count)| MOST_READ_ENTRIES < **count);
    let leased = leased(keys, now);
    let leased = leased.filter(|(_, count, _)| *count <= MOST_READ_ENTRIES);
    let strange = strange.map(move |_| keys.ttl(now));
    leased.map(|(_, _, ttl)| ttl).chain(strange)
}

/// Returns the readers whose leases have not run out, each with its hold count and the rest of its lease.
pub(super) fn leased(keys: &Keys, now: WallMillis) -> impl Iterator<Item = (OwnerId, u32, Ttl)> {
    let readers = match keys.held(now) {
        Some(Held::ReadWrite(held)) => Some(&held.readers),
        _ => None,
    };
    let readers = readers.into_iter().flatten();
    readers.filter_map(move |(owner, count)| {
        let lease = keys.reads.get(owner)?;
        let is_alive = lease.is_there(now);
        is_alive.then(|| (*owner, *count, lease.ttl(now)))
    })
}
