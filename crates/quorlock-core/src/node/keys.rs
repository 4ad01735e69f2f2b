//! The keys of one name, for all modes.

use std::collections::{BTreeMap, VecDeque};

use super::held::Held;
use crate::claim_version::{ClaimVersion, ClockMargin};
use crate::fencing::{Fence, Token, mint};
use crate::lease::Lease;
use crate::message::{Acquire, Freshness, RenewReply, Retention, Ttl};
use crate::owner::OwnerId;
use crate::time::WallMillis;

/// The waiters in order, and until when each is considered alive.
pub(super) type Queue = VecDeque<(OwnerId, WallMillis)>;

/// The keys of one name.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) claim: Option<Key<Held>>,
    pub(super) token: Option<Key<Token>>,
    /// Version of the claim, if it was requested with a clock margin.
    pub(super) version: Option<ClaimVersion>,
    /// Waiters of the fair lock.
    pub(super) queue: Option<Key<Queue>>,
    /// Lease of each reader.
    pub(super) reads: BTreeMap<OwnerId, Key<()>>,
}

/// The keys that belong to one name alone. (Twins share the prefix of the keys of readers' leases, but no two names
/// have a reader with the same owner.)
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct OwnKeys {
    pub(super) claim: Option<Key<Held>>,
    pub(super) version: Option<ClaimVersion>,
    pub(super) reads: BTreeMap<OwnerId, Key<()>>,
}

/// The keys that a name shares with its twin.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct SharedKeys {
    pub(super) token: Option<Key<Token>>,
    pub(super) queue: Option<Key<Queue>>,
}

/// A key of a name that a server may evict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyKind {
    /// The claim.
    Claim,
    /// The token counter.
    Token,
    /// The queue of the fair lock.
    Queue,
    /// The times until which the waiters are considered alive.
    Alive,
    /// The times after which other programs drop the waiters. The specification has none.
    Timeouts,
}

/// A key and its expiry: an absolute time of the node's own clock, at which the key still exists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key<V> {
    pub(super) value: V,
    pub(super) expires: Option<WallMillis>,
}

impl<V> Key<V> {
    pub(super) fn is_there(&self, now: WallMillis) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }

    pub(super) fn ttl(&self, now: WallMillis) -> Ttl {
        self.expires.map_or(Ttl::Unbounded, |expires| {
            Ttl::Millis(expires.0.saturating_sub(now.0))
        })
    }

    pub(super) fn extend(&mut self, now: WallMillis, lease_millis: u64) {
        if let Some(expires) = &mut self.expires {
            *expires = (*expires).max(now.plus(lease_millis));
        }
    }
}

impl OwnKeys {
    pub(super) fn claim(&self, now: WallMillis) -> Option<&Key<Held>> {
        self.claim.as_ref().filter(|key| key.is_there(now))
    }

    /// Stores a value under the name. Readers get leases of the same length.
    pub(super) fn put(&mut self, held: Held, expires: Option<WallMillis>) {
        let mut keys = Keys::new(std::mem::take(self), SharedKeys::default());
        keys.put(held, expires);
        *self = keys.apart().0;
    }

    /// Removes expired keys. Returns whether any key is left.
    pub(super) fn sweep(&mut self, now: WallMillis) -> bool {
        if self.claim(now).is_none() {
            self.claim = None;
            self.version = None;
        }
        self.reads.retain(|_, key| key.is_there(now));
        *self != OwnKeys::default()
    }
}

impl SharedKeys {
    pub(super) fn token(&self, now: WallMillis) -> Option<Token> {
        let key = self.token.as_ref().filter(|key| key.is_there(now));
        key.map(|key| key.value)
    }

    /// Removes expired keys. Returns whether any key is left.
    pub(super) fn sweep(&mut self, now: WallMillis) -> bool {
        self.token.take_if(|key| !key.is_there(now));
        self.queue.take_if(|key| !key.is_there(now));
        *self != SharedKeys::default()
    }
}

impl Keys {
    pub(super) fn new(own: OwnKeys, shared: SharedKeys) -> Self {
        Keys {
            claim: own.claim,
            version: own.version,
            reads: own.reads,
            token: shared.token,
            queue: shared.queue,
        }
    }

    pub(super) fn apart(self) -> (OwnKeys, SharedKeys) {
        let own = OwnKeys {
            claim: self.claim,
            version: self.version,
            reads: self.reads,
        };
        let shared = SharedKeys {
            token: self.token,
            queue: self.queue,
        };
        (own, shared)
    }

    /// Returns the key of the claim, if it has not expired.
    pub(super) fn claim(&self, now: WallMillis) -> Option<&Key<Held>> {
        self.claim.as_ref().filter(|key| key.is_there(now))
    }

    pub(super) fn claim_mut(&mut self, now: WallMillis) -> Option<&mut Key<Held>> {
        self.claim.as_mut().filter(|key| key.is_there(now))
    }

    /// Returns what is stored under the name, if it has not expired.
    pub(super) fn held(&self, now: WallMillis) -> Option<&Held> {
        self.claim(now).map(|key| &key.value)
    }

    pub(super) fn put(&mut self, held: Held, expires: Option<WallMillis>) {
        self.forget_claim();
        if let Held::ReadWrite(held) = &held {
            for reader in held.readers.keys() {
                self.reads.insert(*reader, Key { value: (), expires });
            }
        }
        let value = held;
        self.claim = Some(Key { value, expires });
    }

    /// Deletes the claim under the name and everything that belongs to it.
    pub(super) fn forget_claim(&mut self) {
        self.version = None;
        if let Some(Key {
            value: Held::ReadWrite(held),
            ..
        }) = self.claim.take()
        {
            for reader in held.readers.keys() {
                self.reads.remove(reader);
            }
        }
    }

    /// Deletes the claim if it has expired, as a node does with each key that it accesses. Suppose the owner learned
    /// that its claim is lost, and so never releases it: without the deletion the claim would exist again when the
    /// clock is set back.
    pub(super) fn expire_claim(&mut self, now: WallMillis) {
        if self.claim.as_ref().is_some_and(|key| !key.is_there(now)) {
            self.forget_claim();
        }
    }

    /// Chooses the token of a grant and stores it.
    pub(super) fn hand_out(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
        freshness: Freshness,
    ) -> Token {
        let stored = self.token(now);
        let token = match (freshness, stored, ask.fence) {
            // A request that is executed twice gets the value of the first time.
            (Freshness::AlreadyYours, Some(stored), Fence::Mint { .. }) => stored,
            (_, Some(stored), Fence::Mint { .. }) if ask.is_next_to(stored) => stored.next(),
            _ => mint(stored, ask.fence, now),
        };
        self.store_token(now, token, ask.retention);
        token
    }

    /// Stores the token of a claim that is kept for this long, if it is larger than the stored one, or if the renewal is
    /// due to look at the counter and half of the retention is over. Almost all renewals therefore write nothing here.
    pub(super) fn carry(
        &mut self,
        now: WallMillis,
        token: Token,
        retention: Retention,
        lease_millis: u64,
    ) -> RenewReply {
        let stored = self.token(now);
        let token = stored.map_or(token, |stored| stored.max(token));
        let is_due = is_due(now, retention, lease_millis);
        if stored != Some(token) || is_due && !self.outlives(now, retention, lease_millis) {
            self.store_token(now, token, retention);
        }
        RenewReply::AlreadyYours { token }
    }

    /// Returns whether the token counter, without being written again, outlives a claim that is kept for this long.
    fn outlives(&self, now: WallMillis, retention: Retention, lease_millis: u64) -> bool {
        let left = self.token.as_ref().map(|key| key.ttl(now));
        match (retention, left) {
            (Retention::Forever, Some(Ttl::Unbounded)) => true,
            (Retention::Millis(kept), Some(Ttl::Millis(left))) => {
                lease_millis <= kept / 2 && kept <= left.saturating_mul(2)
            }
            _ => false,
        }
    }

    pub(super) fn token(&self, now: WallMillis) -> Option<Token> {
        let key = self.token.as_ref().filter(|key| key.is_there(now));
        key.map(|key| key.value)
    }

    pub(super) fn store_token(&mut self, now: WallMillis, token: Token, retention: Retention) {
        let expires = match retention {
            Retention::Millis(millis) => Some(now.plus(millis)),
            Retention::Forever => None,
        };
        let value = token;
        self.token = Some(Key { value, expires });
    }

    /// Deletes a key that a server evicts.
    pub(super) fn evict(&mut self, kind: KeyKind) {
        match kind {
            KeyKind::Claim => self.forget_claim(),
            KeyKind::Token => self.token = None,
            KeyKind::Queue => self.queue = None,
            // The queue expires when the last waiter is dead: none is considered alive for longer.
            KeyKind::Alive => {
                if let Some(key) = &mut self.queue
                    && let Some(expires) = key.expires
                {
                    for (_, alive) in &mut key.value {
                        *alive = expires;
                    }
                }
            }
            KeyKind::Timeouts => {}
        }
    }

    /// Returns the remaining TTL of the claim.
    pub(super) fn ttl(&self, now: WallMillis) -> Ttl {
        let claim = self.claim(now);
        claim.map_or(Ttl::Millis(0), |key| key.ttl(now))
    }

    /// Gives the claim this version if its number is larger than the present one. A request that was overtaken must not
    /// set the version back.
    pub(super) fn set_version(&mut self, owner: OwnerId, lease: Lease, keep: ClockMargin) {
        if self
            .version
            .is_none_or(|before| before.number < keep.number)
        {
            self.version = Some(keep.version(owner, lease));
        }
    }

    /// Returns the version of the claim.
    pub(super) fn version(&self, now: WallMillis) -> Option<ClaimVersion> {
        let is_plain = matches!(self.held(now), Some(Held::Plain { .. }));
        self.version.filter(|_| is_plain)
    }

    pub(super) fn first(&self, now: WallMillis) -> Option<(OwnerId, WallMillis)> {
        let key = self.queue.as_ref().filter(|key| key.is_there(now))?;
        key.value.front().copied()
    }

    pub(super) fn has_queue(&self, now: WallMillis) -> bool {
        self.queue.as_ref().is_some_and(|key| key.is_there(now))
    }

    /// Returns the waiters in the queue, and how much longer each is considered alive.
    pub(super) fn queue(&self, now: WallMillis) -> impl Iterator<Item = (OwnerId, Ttl)> {
        let key = self.queue.as_ref().filter(|key| key.is_there(now));
        let waiting = key.into_iter().flat_map(|key| key.value.iter());
        waiting.map(move |(owner, alive)| (*owner, Ttl::Millis(alive.0.saturating_sub(now.0))))
    }
}

/// Returns whether a renewal looks at the TTL of a counter that already has the hold's token.
///
/// A look costs a server a fifth of a renewal, and a counter is kept for a day. So a renewal looks only during the first
/// `lease_millis` of each eighth of the retention. Renewals of a claim are less than its lease apart, so one of them
/// falls into that time. For a lease of more than an eighth of the retention, each renewal looks.
fn is_due(now: WallMillis, retention: Retention, lease_millis: u64) -> bool {
    match retention {
        Retention::Millis(kept) if lease_millis <= kept / 8 => now.0 % (kept / 8) < lease_millis,
        _ => true,
    }
}
