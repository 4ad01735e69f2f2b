//! The executable specification of one lock server.
//!
//! Plain Rust that applies a [`Request`] to the keys of one node, at a given time of the node's own clock. The
//! in-memory node and the simulator run this code. Every real node gives the same answers, which a conformance test checks
//! on generated sequences.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::claim_version::ClaimVersion;
use crate::failure::Cause;
use crate::fencing::Token;
use crate::marker::{Lineage, Marked, Marker, Process};
use crate::message::{
    Access, Acquire, AcquireReply, Channel, ForceRelease, ForceReleaseReply, Found, Inspect,
    InspectReply, Mode, Release, ReleaseReply, Renew, RenewReply, Reply, Request, Ttl, Wake,
};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;

mod claim_versions;
mod fair;
mod hand_over;
mod held;
mod keys;
mod plain;
mod read_write;
pub mod record;

pub use held::{Held, ReadWrite};
pub use keys::KeyKind;
use keys::{Key, Keys, OwnKeys, SharedKeys};

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    names: BTreeMap<Name, OwnKeys>,
    /// The keys that twins share, by the stem of the names.
    stems: BTreeMap<Arc<[u8]>, SharedKeys>,
    marked: Marked,
    swept_at_len: usize,
}

/// The result of a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Applied {
    /// Reply, or the error that the server raises before its first write.
    pub reply: Result<Reply, Cause>,
    /// Message that the node publishes, and its channel.
    pub published: Published,
}

/// The message that a request publishes, if any.
type Published = Option<(Channel, Wake)>;

impl Node {
    /// Returns a node without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Executes one request atomically, at `now` of the node's clock.
    pub fn apply(&mut self, now: WallMillis, request: &Request) -> Applied {
        let mut published = None;
        let reply = match request {
            Request::Acquire(ask) => self.checked_acquire(now, ask, &mut published),
            Request::Probe(check) => self
                .marked
                .admits(now, *check, 0)
                .map(|()| Reply::Probe(self.marked.check(now, *check))),
            Request::Renew(ask) => Ok(Reply::Renew(self.renew(now, ask))),
            Request::Release(ask) => self.release(now, ask, &mut published).map(Reply::Release),
            Request::Inspect(ask) => Ok(Reply::Inspect(self.inspect(now, ask))),
            Request::ForceRelease(ask) => self
                .force_release(now, ask, &mut published)
                .map(Reply::ForceRelease),
        };
        Applied { reply, published }
    }

    /// Executes an acquire, and its check of the marker if it has one.
    fn checked_acquire(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
        published: &mut Published,
    ) -> Result<Reply, Cause> {
        let is_trusted = |check| self.marked.is_trusted(now, check);
        if ask.after.is_some() && !ask.check.is_some_and(is_trusted) {
            // The counter may be older than what was seen.
            let ask = Acquire {
                after: None,
                ..ask.clone()
            };
            return self.checked_acquire(now, &ask, published);
        }
        let Some(check) = ask.check else {
            return self.acquire_as(now, ask, published).map(Reply::Acquire);
        };
        self.marked.admits(now, check, ask.lease.millis())?;
        let reply = self.acquire_as(now, ask, published)?;
        Ok(Reply::Checked(reply, self.marked.check(now, check)))
    }

    fn acquire_as(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
        published: &mut Published,
    ) -> Result<AcquireReply, Cause> {
        self.with_keys(now, &ask.name, |keys| {
            hand_over::acquire(keys, now, ask, |keys| match ask.access {
                Access::Plain => claim_versions::acquire(keys, now, ask),
                Access::Fair(place) => fair::acquire(keys, now, ask, place, published),
                Access::Read { under } => read_write::read_acquire(keys, now, ask, under),
                Access::Write => read_write::write_acquire(keys, now, ask),
            })
        })
    }

    fn renew(&mut self, now: WallMillis, ask: &Renew) -> Vec<RenewReply> {
        let renewals = ask.claims.iter().map(|claim| {
            self.with_keys(now, &claim.name, |keys| match ask.mode {
                Mode::Plain | Mode::Fair => plain::renew(keys, now, claim, ask.retention),
                Mode::Read => read_write::renew_read(keys, now, claim),
                Mode::Write => read_write::renew_write(keys, now, claim, ask.retention),
            })
        });
        renewals.collect()
    }

    fn release(
        &mut self,
        now: WallMillis,
        ask: &Release,
        published: &mut Published,
    ) -> Result<ReleaseReply, Cause> {
        self.with_keys(now, &ask.name, |keys| match ask.mode {
            Mode::Plain => plain::release(keys, now, ask, published),
            Mode::Fair => fair::release(keys, now, ask, published),
            Mode::Read => read_write::read_release(keys, now, ask, published),
            Mode::Write => read_write::write_release(keys, now, ask, published),
        })
    }

    fn inspect(&self, now: WallMillis, ask: &Inspect) -> InspectReply {
        let keys = &self.keys(&ask.name);
        let ttl = keys.ttl(now);
        let found = match keys.held(now) {
            None => Found::Nothing,
            Some(Held::Plain { owner, count }) => Found::Plain {
                owner: owner.to_string(),
                count: u64::from(*count),
                ttl,
            },
            Some(Held::ReadWrite(held)) => Found::ReadWrite {
                writer: held
                    .writer
                    .map(|(owner, count)| (owner.to_string(), count.into())),
                readers: read_write::reading(keys, now).count() as u64,
                ttl,
            },
            Some(Held::NotALock) => Found::NotALock,
        };
        InspectReply {
            found,
            waiting: keys.queue(now).count() as u64,
            token: keys.token(now),
            client: None,
        }
    }

    fn force_release(
        &mut self,
        now: WallMillis,
        ask: &ForceRelease,
        published: &mut Published,
    ) -> Result<ForceReleaseReply, Cause> {
        let name = &ask.name;
        self.with_keys(now, name, |keys| force_release(keys, now, name, published))
    }

    /// Applies a change to the keys of a name, after removing a claim that has expired.
    fn with_keys<T>(
        &mut self,
        now: WallMillis,
        name: &Name,
        change: impl FnOnce(&mut Keys) -> T,
    ) -> T {
        let own = self.names.get_mut(name).map(std::mem::take);
        let shared = self.stems.get_mut(name.stem()).map(std::mem::take);
        let mut keys = Keys::new(own.unwrap_or_default(), shared.unwrap_or_default());
        keys.expire_claim(now);
        let result = change(&mut keys);
        let (own, shared) = keys.apart();
        put_back(&mut self.names, name, own, Name::clone);
        put_back(&mut self.stems, name.stem(), shared, |stem| stem.into());
        self.sweep(now);
        result
    }

    /// Returns a copy of the keys of a name.
    fn keys(&self, name: &Name) -> Keys {
        let own = self.names.get(name).cloned();
        let shared = self.stems.get(name.stem()).cloned();
        Keys::new(own.unwrap_or_default(), shared.unwrap_or_default())
    }

    /// Removes expired keys whenever the number of keys has doubled, so that memory is proportional to the names in
    /// use.
    fn sweep(&mut self, now: WallMillis) {
        let len = self.names.len() + self.stems.len();
        if 2 * self.swept_at_len + 1024 <= len {
            self.names.retain(|_, keys| keys.sweep(now));
            self.stems.retain(|_, keys| keys.sweep(now));
            self.swept_at_len = self.names.len() + self.stems.len();
        }
    }

    /// Stores a value under the key of a name, as another program would. Readers get leases of the same length.
    pub fn put(&mut self, name: &Name, held: Held, expires: Option<WallMillis>) {
        self.names
            .entry(name.clone())
            .or_default()
            .put(held, expires);
    }

    /// Deletes one key of a name, as a server at its memory limit may.
    pub fn evict(&mut self, now: WallMillis, name: &Name, kind: KeyKind) {
        self.with_keys(now, name, |keys| keys.evict(kind));
    }

    /// Sets a token counter, as another program would.
    pub fn put_token(&mut self, name: &Name, token: Token, expires: Option<WallMillis>) {
        let shared = self.stems.entry(name.stem().into()).or_default();
        let value = token;
        shared.token = Some(Key { value, expires });
    }

    /// Removes all keys. A restart without persistence is a flush followed by
    /// [`Node::set_process`].
    pub fn flush(&mut self) {
        let lineage = self.marked.lineage;
        *self = Node::of_process(self.marked.process);
        self.marked.lineage = lineage;
    }

    /// Returns a node without keys that is this process.
    #[must_use]
    pub fn of_process(process: Process) -> Self {
        let mut node = Node::default();
        node.marked.process = process;
        node
    }

    /// Returns the process that the node is.
    #[must_use]
    pub fn process(&self) -> Process {
        self.marked.process
    }

    /// Sets whether all data of the node counts as written to itself, from now on.
    pub fn set_lineage(&mut self, lineage: Lineage) {
        self.marked.lineage = lineage;
    }

    /// Makes the node another process from now on, as a restart or a promotion does. Its keys stay.
    pub fn set_process(&mut self, process: Process) {
        self.marked.process = process;
    }

    /// Returns the marker at `now`.
    #[must_use]
    pub fn marker(&self, now: WallMillis) -> Option<Marker> {
        self.marked.marker(now)
    }

    /// Sets the marker, as another program would.
    pub fn put_marker(&mut self, marker: Option<Marker>) {
        self.marked.put(marker);
    }

    /// Returns what is stored under a name at `now`, and its remaining TTL.
    #[must_use]
    pub fn held(&self, now: WallMillis, name: &Name) -> Option<(Held, Ttl)> {
        let key = self.names.get(name)?.claim(now)?;
        Some((key.value.clone(), key.ttl(now)))
    }

    /// Returns whether this owner has a claim of a name in this mode at `now`.
    #[must_use]
    pub fn is_claimed_by(
        &self,
        now: WallMillis,
        name: &Name,
        mode: Mode,
        claimant: OwnerId,
    ) -> bool {
        match (self.held(now, name), mode) {
            (Some((Held::Plain { owner, .. }, _)), Mode::Plain | Mode::Fair) => owner == claimant,
            (Some((Held::ReadWrite(held), _)), Mode::Write) => {
                held.writer.is_some_and(|(owner, _)| owner == claimant)
            }
            (Some((Held::ReadWrite(held), _)), Mode::Read) => held.readers.contains_key(&claimant),
            _ => false,
        }
    }

    /// Returns the token that is stored for a name at `now`.
    #[must_use]
    pub fn stored_token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.stems.get(name.stem())?.token(now)
    }

    /// Returns the claim version of the claim under a name at `now`, if it has one.
    #[must_use]
    pub fn version(&self, now: WallMillis, name: &Name) -> Option<ClaimVersion> {
        self.keys(name).version(now)
    }

    /// Returns the waiters in the queue of a fair lock at `now`, and how much longer each is considered alive.
    #[must_use]
    pub fn queue(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, Ttl)> {
        self.keys(name).queue(now).collect()
    }

    /// Returns the readers of a name at `now`, each with its hold count and the rest of its lease.
    #[must_use]
    pub fn readers(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, u32, Ttl)> {
        read_write::leased(&self.keys(name), now).collect()
    }

    /// Returns every name that has a claim at `now`, in order.
    pub fn names(&self, now: WallMillis) -> impl Iterator<Item = &Name> {
        self.names
            .iter()
            .filter(move |(_, keys)| keys.claim(now).is_some())
            .map(|(name, _)| name)
    }
}

/// Stores the keys under this key of the map, or removes the entry if there are none.
fn put_back<K, Q, V>(map: &mut BTreeMap<K, V>, key: &Q, keys: V, new: impl FnOnce(&Q) -> K)
where
    K: Borrow<Q> + Ord,
    Q: Ord + ?Sized,
    V: Default + PartialEq,
{
    if keys == V::default() {
        map.remove(key);
    } else if let Some(place) = map.get_mut(key) {
        *place = keys;
    } else {
        map.insert(new(key), keys);
    }
}

fn force_release(
    keys: &mut Keys,
    now: WallMillis,
    name: &Name,
    published: &mut Published,
) -> Result<ForceReleaseReply, Cause> {
    *published = match keys.held(now) {
        None => {
            if !fair::drop_dead(keys, now) && !fair::drop_first(keys, now) {
                return Ok(ForceReleaseReply::WasFree);
            }
            let waiter = fair::first_waiting(keys, now, name);
            let channel = waiter.unwrap_or_else(|| Channel::Lock(name.clone()));
            *published = Some((channel, Wake::Unlocked));
            return Ok(ForceReleaseReply::Freed);
        }
        Some(Held::NotALock) => return Err(Cause::WrongType),
        Some(Held::Plain { .. }) => {
            fair::drop_dead(keys, now);
            let waiter = fair::first_waiting(keys, now, name);
            let channel = waiter.unwrap_or_else(|| Channel::Lock(name.clone()));
            Some((channel, Wake::Unlocked))
        }
        Some(Held::ReadWrite(_)) => Some((Channel::ReadWrite(name.clone()), Wake::ReadersMayEnter)),
    };
    keys.forget_claim();
    Ok(ForceReleaseReply::Freed)
}

#[cfg(test)]
mod tests;
