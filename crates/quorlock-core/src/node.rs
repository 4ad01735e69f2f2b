//! The executable specification of one lock server.
//!
//! Plain Rust that applies a [`Request`] to the keys of one node at a given time of the node's own clock. The
//! in-memory node and the simulator run it; the Lua scripts of `quorlock-redis` on a real server answer alike, which
//! a conformance test checks on generated sequences.

use std::collections::BTreeMap;

use crate::beat::Beat;
use crate::failure::Cause;
use crate::fencing::{Fence, Token, mint};
use crate::marker::{Lineage, Marked, Marker, Process};
use crate::message::{
    Access, Acquire, AcquireReply, Channel, ForceRelease, ForceReleaseReply, Found, Freshness,
    Inspect, InspectReply, Mode, Release, ReleaseReply, Renew, RenewReply, Reply, Request,
    Retention, Ttl, Wake,
};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;

mod beats;
mod fair;
mod plain;
mod read_write;

use fair::Queue;

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    names: BTreeMap<Name, Keys>,
    marked: Marked,
    swept_at_len: usize,
}

/// The keys of one name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Keys {
    claim: Option<Key<Held>>,
    token: Option<Key<Token>>,
    /// The beat of the claim.
    beat: Option<Beat>,
    /// Who waits for the fair lock.
    queue: Option<Key<Queue>>,
    /// Each reader's own lease.
    reads: BTreeMap<OwnerId, Key<()>>,
}

/// A key with its expiry, as Redis keeps it: an absolute time of the node's own clock, at which it still exists.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key<V> {
    value: V,
    expires: Option<WallMillis>,
}

impl<V> Key<V> {
    fn is_there(&self, now: WallMillis) -> bool {
        self.expires.is_none_or(|expires| now <= expires)
    }

    fn ttl(&self, now: WallMillis) -> Ttl {
        self.expires.map_or(Ttl::Unbounded, |expires| {
            Ttl::Millis(expires.0.saturating_sub(now.0))
        })
    }

    fn extend(&mut self, now: WallMillis, lease_millis: u64) {
        if let Some(expires) = &mut self.expires {
            *expires = (*expires).max(now.plus(lease_millis));
        }
    }
}

/// What stands under the key of a name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Held {
    /// A claim of a plain lock, or of a fair one.
    Plain {
        /// Whose.
        owner: OwnerId,
        /// At which hold count.
        count: u32,
    },
    /// Claims of a read-write lock.
    ReadWrite(ReadWrite),
    /// A key that is no lock at all.
    NotALock,
}

/// The claims of a read-write lock: readers, or a writer, who may be among the readers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ReadWrite {
    /// Who writes, and at which hold count.
    pub writer: Option<(OwnerId, u32)>,
    /// Who reads, and at which hold count. Some may be dead: their leases have run out, and nobody noticed yet.
    pub readers: BTreeMap<OwnerId, u32>,
}

impl ReadWrite {
    fn mode(&self) -> Mode {
        match self.writer {
            Some(_) => Mode::Write,
            None => Mode::Read,
        }
    }
}

impl Held {
    /// What one reader holds.
    #[must_use]
    pub fn read(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: None,
            readers: BTreeMap::from([(owner, count)]),
        })
    }

    /// What a writer holds.
    #[must_use]
    pub fn write(owner: OwnerId, count: u32) -> Self {
        Held::ReadWrite(ReadWrite {
            writer: Some((owner, count)),
            readers: BTreeMap::new(),
        })
    }
}

/// What a request did.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Applied {
    /// The reply, or the error that the server raises before its first write.
    pub reply: Result<Reply, Cause>,
    /// What the node publishes, and where.
    pub published: Published,
}

type Published = Option<(Channel, Wake)>;

impl Node {
    /// A node without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Executes one request, atomically, at `now` of the node's clock.
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

    /// An acquire that perhaps shows which process the node is.
    fn checked_acquire(
        &mut self,
        now: WallMillis,
        ask: &Acquire,
        published: &mut Published,
    ) -> Result<Reply, Cause> {
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
        let keys = self.keys_mut(now, &ask.name);
        match ask.access {
            Access::Plain => keys.beating_acquire(now, ask),
            Access::Fair(place) => keys.fair_acquire(now, ask, place, published),
            Access::Read { under } => keys.read_acquire(now, ask, under),
            Access::Write => keys.write_acquire(now, ask),
        }
    }

    fn renew(&mut self, now: WallMillis, ask: &Renew) -> Vec<RenewReply> {
        ask.claims
            .iter()
            .map(|claim| match (self.names.get_mut(&claim.name), ask.mode) {
                (None, _) => RenewReply::NotYours,
                (Some(keys), Mode::Plain | Mode::Fair) => {
                    keys.renew_plain(now, claim, ask.retention)
                }
                (Some(keys), Mode::Read) => keys.renew_read(now, claim),
                (Some(keys), Mode::Write) => keys.renew_write(now, claim, ask.retention),
            })
            .collect()
    }

    fn release(
        &mut self,
        now: WallMillis,
        ask: &Release,
        published: &mut Published,
    ) -> Result<ReleaseReply, Cause> {
        let Some(keys) = self.names.get_mut(&ask.name) else {
            return Ok(ReleaseReply::NotYours);
        };
        match ask.mode {
            Mode::Plain => keys.release(now, ask, published),
            Mode::Fair => keys.fair_release(now, ask, published),
            Mode::Read => keys.read_release(now, ask, published),
            Mode::Write => keys.write_release(now, ask, published),
        }
    }

    fn inspect(&self, now: WallMillis, ask: &Inspect) -> InspectReply {
        let Some(keys) = self.names.get(&ask.name) else {
            return InspectReply {
                found: Found::Nothing,
                waiting: 0,
                token: None,
            };
        };
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
                readers: keys.reading(now).count() as u64,
                ttl,
            },
            Some(Held::NotALock) => Found::NotALock,
        };
        InspectReply {
            found,
            waiting: keys.queue(now).count() as u64,
            token: keys.token(now),
        }
    }

    fn force_release(
        &mut self,
        now: WallMillis,
        ask: &ForceRelease,
        published: &mut Published,
    ) -> Result<ForceReleaseReply, Cause> {
        let name = &ask.name;
        let Some(keys) = self.names.get_mut(name) else {
            return Ok(ForceReleaseReply::WasFree);
        };
        *published = match keys.held(now) {
            None => {
                if !keys.drop_dead(now) && !keys.drop_first(now) {
                    return Ok(ForceReleaseReply::WasFree);
                }
                let waiter = keys.first_waiting(now, name);
                let channel = waiter.unwrap_or_else(|| Channel::Lock(name.clone()));
                *published = Some((channel, Wake::Unlocked));
                return Ok(ForceReleaseReply::Freed);
            }
            Some(Held::NotALock) => return Err(Cause::WrongType),
            Some(Held::Plain { .. }) => {
                keys.drop_dead(now);
                let waiter = keys.first_waiting(now, name);
                let channel = waiter.unwrap_or_else(|| Channel::Lock(name.clone()));
                Some((channel, Wake::Unlocked))
            }
            Some(Held::ReadWrite(_)) => {
                Some((Channel::ReadWrite(name.clone()), Wake::ReadersMayEnter))
            }
        };
        keys.forget_claim();
        Ok(ForceReleaseReply::Freed)
    }

    fn keys_mut(&mut self, now: WallMillis, name: &Name) -> &mut Keys {
        if !self.names.contains_key(name) {
            self.sweep(now);
            self.names.insert(name.clone(), Keys::default());
        }
        let keys = self.names.get_mut(name);
        keys.expect("BUG: a name that was just added")
    }

    /// Forgets expired keys whenever the number of names has doubled, so that memory follows what is in use.
    fn sweep(&mut self, now: WallMillis) {
        if 2 * self.swept_at_len + 1024 <= self.names.len() {
            self.names.retain(|_, keys| keys.sweep(now));
            self.swept_at_len = self.names.len();
        }
    }

    /// Puts something under the key of a name, as another program would. Readers get leases of the same length.
    pub fn put(&mut self, name: &Name, held: Held, expires: Option<WallMillis>) {
        self.names
            .entry(name.clone())
            .or_default()
            .put(held, expires);
    }

    /// Sets a token counter, as another program would.
    pub fn put_token(&mut self, name: &Name, token: Token, expires: Option<WallMillis>) {
        let value = token;
        self.names.entry(name.clone()).or_default().token = Some(Key { value, expires });
    }

    /// Forgets everything, as `FLUSHALL` does. A restart without persistence is this and [`Node::set_process`].
    pub fn flush(&mut self) {
        let lineage = self.marked.lineage;
        *self = Node::of_process(self.marked.process);
        self.marked.lineage = lineage;
    }

    /// A node without keys that is this process.
    #[must_use]
    pub fn of_process(process: Process) -> Self {
        let mut node = Node::default();
        node.marked.process = process;
        node
    }

    /// Which process the node is.
    #[must_use]
    pub fn process(&self) -> Process {
        self.marked.process
    }

    /// Whether all that the node has was written to itself, from now on.
    pub fn set_lineage(&mut self, lineage: Lineage) {
        self.marked.lineage = lineage;
    }

    /// The node is another process from now on: it was restarted, or became a primary. Its keys stay.
    pub fn set_process(&mut self, process: Process) {
        self.marked.process = process;
    }

    /// The marker at `now`.
    #[must_use]
    pub fn marker(&self, now: WallMillis) -> Option<Marker> {
        self.marked.marker(now)
    }

    /// Sets the marker, as another program would.
    pub fn put_marker(&mut self, marker: Option<Marker>) {
        self.marked.put(marker);
    }

    /// What stands under a name at `now`, and what is left of it.
    #[must_use]
    pub fn held(&self, now: WallMillis, name: &Name) -> Option<(Held, Ttl)> {
        let key = self.names.get(name)?.claim(now)?;
        Some((key.value.clone(), key.ttl(now)))
    }

    /// The token stored for a name at `now`.
    #[must_use]
    pub fn stored_token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.names.get(name)?.token(now)
    }

    /// The beat of the claim that stands under a name at `now`, if it has one.
    #[must_use]
    pub fn beat(&self, now: WallMillis, name: &Name) -> Option<Beat> {
        self.names.get(name)?.beat(now)
    }

    /// Who stands in the queue of a fair lock at `now`, and for how long each is taken to be alive yet.
    #[must_use]
    pub fn queue(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, Ttl)> {
        let keys = self.names.get(name);
        keys.map(|keys| keys.queue(now).collect())
            .unwrap_or_default()
    }

    /// Who reads under a name at `now`, at which hold count, and what is left of each one's lease.
    #[must_use]
    pub fn readers(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, u32, Ttl)> {
        let keys = self.names.get(name);
        keys.map(|keys| keys.leased(now).collect())
            .unwrap_or_default()
    }

    /// Every name under which something stands at `now`, in order.
    pub fn names(&self, now: WallMillis) -> impl Iterator<Item = &Name> {
        self.names
            .iter()
            .filter(move |(_, keys)| keys.claim(now).is_some())
            .map(|(name, _)| name)
    }
}

impl Keys {
    /// The key of the claim.
    fn claim(&self, now: WallMillis) -> Option<&Key<Held>> {
        self.claim.as_ref().filter(|key| key.is_there(now))
    }

    fn claim_mut(&mut self, now: WallMillis) -> Option<&mut Key<Held>> {
        self.claim.as_mut().filter(|key| key.is_there(now))
    }

    /// What stands under the name.
    fn held(&self, now: WallMillis) -> Option<&Held> {
        self.claim(now).map(|key| &key.value)
    }

    fn put(&mut self, held: Held, expires: Option<WallMillis>) {
        self.forget_claim();
        if let Held::ReadWrite(held) = &held {
            for reader in held.readers.keys() {
                self.reads.insert(*reader, Key { value: (), expires });
            }
        }
        let value = held;
        self.claim = Some(Key { value, expires });
    }

    /// Deletes what stands under the name, with all that belongs to it.
    fn forget_claim(&mut self) {
        self.beat = None;
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

    /// The token of a grant, stored.
    fn hand_out(&mut self, now: WallMillis, ask: &Acquire, freshness: Freshness) -> Token {
        let stored = self.token(now);
        let token = match (freshness, stored, ask.fence) {
            // A resent request gets the value that it was given.
            (Freshness::AlreadyYours, Some(stored), Fence::Mint { .. }) => stored,
            _ => mint(stored, ask.fence, now),
        };
        self.store_token(now, token, ask.retention);
        token
    }

    /// Stores the token of a renewed claim, if it is larger than what is there.
    fn carry(&mut self, now: WallMillis, token: Token, retention: Retention) -> RenewReply {
        let stored = self.token(now);
        let token = stored.map_or(token, |stored| stored.max(token));
        self.store_token(now, token, retention);
        RenewReply::AlreadyYours { token }
    }

    fn token(&self, now: WallMillis) -> Option<Token> {
        let key = self.token.as_ref().filter(|key| key.is_there(now));
        key.map(|key| key.value)
    }

    fn store_token(&mut self, now: WallMillis, token: Token, retention: Retention) {
        let expires = match retention {
            Retention::Millis(millis) => Some(now.plus(millis)),
            Retention::Forever => None,
        };
        let value = token;
        self.token = Some(Key { value, expires });
    }

    /// Forgets what has expired; whether anything is left.
    fn sweep(&mut self, now: WallMillis) -> bool {
        if self.claim(now).is_none() {
            self.claim = None;
            self.beat = None;
        }
        self.token.take_if(|key| !key.is_there(now));
        self.queue.take_if(|key| !key.is_there(now));
        self.reads.retain(|_, key| key.is_there(now));
        *self != Keys::default()
    }
}

#[cfg(test)]
mod tests;
