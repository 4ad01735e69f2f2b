//! The executable specification of one lock server.
//!
//! Plain Rust that applies a [`Request`] to the keys of one node, at a given time of the node's own clock. The
//! in-memory node and the simulator run this code. On a real server the Lua scripts of `quorlock-redis` give the same
//! answers, which a conformance test checks on generated sequences.

use std::collections::BTreeMap;

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
mod held;
mod keys;
mod plain;
mod read_write;

pub use held::{Held, ReadWrite};
use keys::{Key, Keys};

/// The keys of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    names: BTreeMap<Name, Keys>,
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
        keys.expire_claim(now);
        match ask.access {
            Access::Plain => claim_versions::acquire(keys, now, ask),
            Access::Fair(place) => fair::acquire(keys, now, ask, place, published),
            Access::Read { under } => read_write::read_acquire(keys, now, ask, under),
            Access::Write => read_write::write_acquire(keys, now, ask),
        }
    }

    fn renew(&mut self, now: WallMillis, ask: &Renew) -> Vec<RenewReply> {
        ask.claims
            .iter()
            .map(|claim| match (self.seen(now, &claim.name), ask.mode) {
                (None, _) => RenewReply::NotYours,
                (Some(keys), Mode::Plain | Mode::Fair) => {
                    plain::renew(keys, now, claim, ask.retention)
                }
                (Some(keys), Mode::Read) => read_write::renew_read(keys, now, claim),
                (Some(keys), Mode::Write) => {
                    read_write::renew_write(keys, now, claim, ask.retention)
                }
            })
            .collect()
    }

    fn release(
        &mut self,
        now: WallMillis,
        ask: &Release,
        published: &mut Published,
    ) -> Result<ReleaseReply, Cause> {
        let Some(keys) = self.seen(now, &ask.name) else {
            return Ok(ReleaseReply::NotYours);
        };
        match ask.mode {
            Mode::Plain => plain::release(keys, now, ask, published),
            Mode::Fair => fair::release(keys, now, ask, published),
            Mode::Read => read_write::read_release(keys, now, ask, published),
            Mode::Write => read_write::write_release(keys, now, ask, published),
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
                readers: read_write::reading(keys, now).count() as u64,
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
        let Some(keys) = self.seen(now, name) else {
            return Ok(ForceReleaseReply::WasFree);
        };
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
            Some(Held::ReadWrite(_)) => {
                Some((Channel::ReadWrite(name.clone()), Wake::ReadersMayEnter))
            }
        };
        keys.forget_claim();
        Ok(ForceReleaseReply::Freed)
    }

    /// Returns the keys of a name, after removing a claim that has expired.
    fn seen(&mut self, now: WallMillis, name: &Name) -> Option<&mut Keys> {
        let keys = self.names.get_mut(name)?;
        keys.expire_claim(now);
        Some(keys)
    }

    fn keys_mut(&mut self, now: WallMillis, name: &Name) -> &mut Keys {
        if !self.names.contains_key(name) {
            self.sweep(now);
            self.names.insert(name.clone(), Keys::default());
        }
        let keys = self.names.get_mut(name);
        keys.expect("BUG: a name that was just added")
    }

    /// Removes expired keys whenever the number of names has doubled, so that memory is proportional to the names in
    /// use.
    fn sweep(&mut self, now: WallMillis) {
        if 2 * self.swept_at_len + 1024 <= self.names.len() {
            self.names.retain(|_, keys| keys.sweep(now));
            self.swept_at_len = self.names.len();
        }
    }

    /// Stores a value under the key of a name, as another program would. Readers get leases of the same length.
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

    /// Removes all keys, as `FLUSHALL` does. A restart without persistence is a flush followed by
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

    /// Returns the token that is stored for a name at `now`.
    #[must_use]
    pub fn stored_token(&self, now: WallMillis, name: &Name) -> Option<Token> {
        self.names.get(name)?.token(now)
    }

    /// Returns the claim version of the claim under a name at `now`, if it has one.
    #[must_use]
    pub fn version(&self, now: WallMillis, name: &Name) -> Option<ClaimVersion> {
        self.names.get(name)?.version(now)
    }

    /// Returns the waiters in the queue of a fair lock at `now`, and how much longer each is considered alive.
    #[must_use]
    pub fn queue(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, Ttl)> {
        let keys = self.names.get(name);
        keys.map(|keys| keys.queue(now).collect())
            .unwrap_or_default()
    }

    /// Returns the readers of a name at `now`, each with its hold count and the rest of its lease.
    #[must_use]
    pub fn readers(&self, now: WallMillis, name: &Name) -> Vec<(OwnerId, u32, Ttl)> {
        let keys = self.names.get(name);
        keys.map(|keys| read_write::leased(keys, now).collect())
            .unwrap_or_default()
    }

    /// Returns every name that has a claim at `now`, in order.
    pub fn names(&self, now: WallMillis) -> impl Iterator<Item = &Name> {
        self.names
            .iter()
            .filter(move |(_, keys)| keys.claim(now).is_some())
            .map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests;
