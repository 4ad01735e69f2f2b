//! The executable specification of one lock server.
//!
//! Plain Rust that applies a [`Request`] to the keys of one node at a given time of the node's own clock. The
//! in-memory node and the simulator run it; the Lua scripts of `quorlock-redis` on a real server answer alike, which
//! a conformance test checks on generated sequences.

use std::collections::BTreeMap;

use crate::beat::Beat;
use crate::fencing::{Fence, Token, mint};
use crate::marker::{Marked, Marker, Process};
use crate::message::{
    Access, Acquire, AcquireReply, Channel, ForceRelease, ForceReleaseReply, Found, Freshness,
    Inspect, InspectReply, Mode, Renew, RenewReply, Reply, Request, Retention, Ttl, Wake,
};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;
use crate::transport::Cause;

mod beats;
mod fair;
mod plain;
mod read_write;

use fair::Queue;

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    claims: BTreeMap<Name, Key<Held>>,
    tokens: BTreeMap<Name, Key<Token>>,
    beats: BTreeMap<Name, Key<Beat>>,
    marked: Marked,
    /// Who waits for fair locks.
    queues: BTreeMap<Name, Key<Queue>>,
    /// Each reader's own lease.
    reads: BTreeMap<(Name, OwnerId), Key<()>>,
    swept_at_len: usize,
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
            Request::Release(ask) => match ask.mode {
                Mode::Plain => self.release(now, ask, &mut published),
                Mode::Fair => self.fair_release(now, ask, &mut published),
                Mode::Read => self.read_release(now, ask, &mut published),
                Mode::Write => self.write_release(now, ask, &mut published),
            }
            .map(Reply::Release),
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
        match ask.access {
            Access::Plain => self.beating_acquire(now, ask),
            Access::Fair(place) => self.fair_acquire(now, ask, place, published),
            Access::Read { under } => self.read_acquire(now, ask, under),
            Access::Write => self.write_acquire(now, ask),
        }
    }

    fn renew(&mut self, now: WallMillis, ask: &Renew) -> Vec<RenewReply> {
        ask.claims
            .iter()
            .map(|claim| match ask.mode {
                Mode::Plain | Mode::Fair => self.renew_plain(now, claim, ask.retention),
                Mode::Read => self.renew_read(now, claim),
                Mode::Write => self.renew_write(now, claim, ask.retention),
            })
            .collect()
    }

    fn inspect(&self, now: WallMillis, ask: &Inspect) -> InspectReply {
        let found = match self.held(now, &ask.name) {
            None => Found::Nothing,
            Some((Held::Plain { owner, count }, ttl)) => Found::Plain {
                owner: owner.to_string(),
                count: count.into(),
                ttl,
            },
            Some((Held::ReadWrite(held), ttl)) => Found::ReadWrite {
                writer: held
                    .writer
                    .map(|(owner, count)| (owner.to_string(), count.into())),
                readers: self.readers(now, &ask.name).len() as u64,
                ttl,
            },
            Some((Held::NotALock, _)) => Found::NotALock,
        };
        InspectReply {
            found,
            waiting: self.queue(now, &ask.name).len() as u64,
            token: self.token(now, &ask.name),
        }
    }

    fn force_release(
        &mut self,
        now: WallMillis,
        ask: &ForceRelease,
        published: &mut Published,
    ) -> Result<ForceReleaseReply, Cause> {
        let name = &ask.name;
        *published = match self.held(now, name) {
            None => return Ok(ForceReleaseReply::WasFree),
            Some((Held::NotALock, _)) => return Err(Cause::WrongType),
            Some((Held::Plain { .. }, _)) => {
                self.drop_dead(now, name);
                let waiter = self.first_waiting(now, name);
                let channel = waiter.unwrap_or_else(|| Channel::Lock(name.clone()));
                Some((channel, Wake::Unlocked))
            }
            Some((Held::ReadWrite(_), _)) => {
                Some((Channel::ReadWrite(name.clone()), Wake::ReadersMayEnter))
            }
        };
        self.forget_claim(name);
        Ok(ForceReleaseReply::Freed)
    }

    /// What stands under a name, and its key.
    fn claim(&self, now: WallMillis, name: &Name) -> Option<(&Held, &Key<Held>)> {
        let key = self.claims.get(name).filter(|key| key.is_there(now))?;
        Some((&key.value, key))
    }

    /// The key of what stands under a name.
    fn claim_mut(&mut self, now: WallMillis, name: &Name) -> Option<&mut Key<Held>> {
        self.claims.get_mut(name).filter(|key| key.is_there(now))
    }

    /// Deletes what stands under a name, with all that belongs to it.
    fn forget_claim(&mut self, name: &Name) {
        if let Some(Key {
            value: Held::ReadWrite(held),
            ..
        }) = self.claims.remove(name)
        {
            for reader in held.readers.into_keys() {
                self.reads.remove(&(name.clone(), reader));
            }
        }
    }

    /// The token of a grant, stored.
    fn hand_out(&mut self, now: WallMillis, ask: &Acquire, freshness: Freshness) -> Token {
        let stored = self.token(now, &ask.name);
        let token = match (freshness, stored, ask.fence) {
            // A resent request gets the value that it was given.
            (Freshness::AlreadyYours, Some(stored), Fence::Mint { .. }) => stored,
            _ => mint(stored, ask.fence, now),
        };
        self.store_token(now, &ask.name, token, ask.retention);
        token
    }

    /// Stores the token of a renewed claim, if it is larger than what is there.
    fn carry(
        &mut self,
        now: WallMillis,
        name: &Name,
        token: Token,
        retention: Retention,
    ) -> RenewReply {
        let stored = self.token(now, name);
        let token = stored.map_or(token, |stored| stored.max(token));
        self.store_token(now, name, token, retention);
        RenewReply::AlreadyYours { token }
    }

    fn token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.tokens
            .get(name)
            .filter(|key| key.is_there(now))
            .map(|key| key.value)
    }

    fn store_token(&mut self, now: WallMillis, name: &Name, token: Token, retention: Retention) {
        let expires = match retention {
            Retention::Millis(millis) => Some(now.plus(millis)),
            Retention::Forever => None,
        };
        if let Some(key) = self.tokens.get_mut(name) {
            *key = Key {
                value: token,
                expires,
            };
            return;
        }
        self.sweep(now);
        self.tokens.insert(
            name.clone(),
            Key {
                value: token,
                expires,
            },
        );
    }

    /// Forgets expired keys whenever their number has doubled, so that memory follows what is in use.
    fn sweep(&mut self, now: WallMillis) {
        if 2 * self.swept_at_len + 1024 <= self.len() {
            self.claims.retain(|_, key| key.is_there(now));
            self.tokens.retain(|_, key| key.is_there(now));
            self.beats.retain(|_, key| key.is_there(now));
            self.queues.retain(|_, key| key.is_there(now));
            self.reads.retain(|_, key| key.is_there(now));
            self.swept_at_len = self.len();
        }
    }

    fn len(&self) -> usize {
        self.claims.len()
            + self.tokens.len()
            + self.beats.len()
            + self.queues.len()
            + self.reads.len()
    }

    /// Puts something under the key of a name, as another program would. Readers get leases of the same length.
    pub fn put(&mut self, name: &Name, held: Held, expires: Option<WallMillis>) {
        self.forget_claim(name);
        if let Held::ReadWrite(held) = &held {
            for reader in held.readers.keys() {
                let lease = Key { value: (), expires };
                self.reads.insert((name.clone(), *reader), lease);
            }
        }
        let key = Key {
            value: held,
            expires,
        };
        self.claims.insert(name.clone(), key);
    }

    /// Sets a token counter, as another program would.
    pub fn put_token(&mut self, name: &Name, token: Token, expires: Option<WallMillis>) {
        let key = Key {
            value: token,
            expires,
        };
        self.tokens.insert(name.clone(), key);
    }

    /// Forgets everything, as `FLUSHALL` does. A restart without persistence is this and [`Node::set_process`].
    pub fn flush(&mut self) {
        *self = Node::of_process(self.marked.process);
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
        self.claims
            .get(name)
            .filter(|key| key.is_there(now))
            .map(|key| (key.value.clone(), key.ttl(now)))
    }

    /// The token stored for a name at `now`.
    #[must_use]
    pub fn stored_token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.token(now, name)
    }

    /// Every name under which something stands at `now`, in order.
    pub fn names(&self, now: WallMillis) -> impl Iterator<Item = &Name> {
        self.claims
            .iter()
            .filter(move |(_, key)| key.is_there(now))
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests;
