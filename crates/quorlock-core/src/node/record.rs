//! The state of one name as text, for stores that keep it as one value.
//!
//! A store has no code that executes requests. It keeps the state of a name as one record, and a client reads the record,
//! applies a request to it, and writes it back if it is unchanged. The form of a record is specified in
//! `docs/src/records.md`: lines of ASCII text, so that people can read it in their database and clients in other
//! languages can write it.
//!
//! Twins ([`Name::stem`](crate::name::Name::stem)) have one record, because they share a counter and a queue.

mod text;

use std::fmt;

pub use self::text::RecordError;
use super::held::Held;
use super::keys::{Key, OwnKeys, SharedKeys};
use super::{Applied, Node};
use crate::failure::Cause;
use crate::fencing::Token;
use crate::marker::{Marker, Process};
use crate::message::{Channel, Reply, Request, Wake};
use crate::name::Name;
use crate::owner::OwnerId;
use crate::time::WallMillis;

/// How many messages a record keeps. A watcher that missed more of them is told that there was a gap.
const KEPT_MESSAGES: usize = 4;

/// The state of the names of one stem, or the marker of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Record {
    /// The time of the record, for stores without a clock of their own. It advances only by what a client has observed:
    /// see [`Record::clock`].
    clock: WallMillis,
    /// Keys of the name that is the stem.
    bare: OwnKeys,
    /// Keys of the name that is the stem in braces.
    braced: OwnKeys,
    shared: SharedKeys,
    marker: Option<Marker>,
    /// How many messages were ever published.
    published: u64,
    /// The last of them, in order.
    messages: Vec<(Topic, Wake)>,
}

/// The kind of a [`Channel`], without the name: a record is about the names of one stem.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Topic {
    /// Waiters of the plain lock.
    Lock,
    /// One waiter of the fair lock.
    Waiter(OwnerId),
    /// Waiting readers and writers.
    ReadWrite,
}

impl Topic {
    /// Returns the kind of a channel, if nodes publish on it.
    #[must_use]
    pub fn of(channel: &Channel) -> Option<Self> {
        match channel {
            Channel::Lock(_) => Some(Topic::Lock),
            Channel::Waiter(_, owner) => Some(Topic::Waiter(*owner)),
            Channel::ReadWrite(_) => Some(Topic::ReadWrite),
            Channel::Claim(..) => None,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topic::Lock => f.write_str("lock"),
            Topic::Waiter(owner) => write!(f, "waiter {owner}"),
            Topic::ReadWrite => f.write_str("read-write"),
        }
    }
}

impl Record {
    /// Executes a request about one name of the record's stem, or about the marker, at `now`.
    ///
    /// The messages that the request publishes become part of the record.
    ///
    /// # Errors
    /// The error that a server raises before its first write.
    pub fn apply(
        &mut self,
        process: Process,
        now: WallMillis,
        request: &Request,
    ) -> Result<Reply, Cause> {
        let mut node = Node::of_process(process);
        node.marked.put(self.marker.take());
        let name = name_of(request);
        if let Some(name) = name {
            node.names
                .insert(name.clone(), std::mem::take(self.own(name)));
            let shared = std::mem::take(&mut self.shared);
            node.stems.insert(name.stem().into(), shared);
        }
        let Applied { reply, published } = node.apply(now, request);
        if let Some(name) = name {
            *self.own(name) = node.names.remove(name).unwrap_or_default();
            self.shared = node.stems.remove(name.stem()).unwrap_or_default();
        }
        self.marker = node.marked.marker(now);
        if let Some((channel, wake)) = published
            && let Some(topic) = Topic::of(&channel)
        {
            self.published += 1;
            self.messages.push((topic, wake));
            if KEPT_MESSAGES < self.messages.len() {
                self.messages.remove(0);
            }
        }
        reply
    }

    /// Returns a node with the keys of the record, whose names have this stem. It is for tools and tests that look at them.
    #[must_use]
    pub fn to_node(&self, process: Process, stem: &Name) -> Node {
        let mut node = Node::of_process(process);
        node.marked.put(self.marker);
        node.names.insert(stem.clone(), self.bare.clone());
        let braced = [b"{", stem.as_bytes(), b"}"].concat();
        if let Ok(braced) = Name::new(braced) {
            node.names.insert(braced, self.braced.clone());
        }
        let shared = self.shared.clone();
        node.stems.insert(stem.as_bytes().into(), shared);
        node
    }

    /// Stores a value under a name of the record, as another program would.
    pub fn put(&mut self, name: &Name, held: Held, expires: Option<WallMillis>) {
        self.own(name).put(held, expires);
    }

    /// Sets the token counter, as another program would.
    pub fn put_token(&mut self, token: Token, expires: Option<WallMillis>) {
        let value = token;
        self.shared.token = Some(Key { value, expires });
    }

    /// Stores or removes the marker, as another program would.
    pub fn put_marker(&mut self, marker: Option<Marker>) {
        self.marker = marker;
    }

    fn own(&mut self, name: &Name) -> &mut OwnKeys {
        match name.stem() == name.as_bytes() {
            true => &mut self.bare,
            false => &mut self.braced,
        }
    }

    /// Returns how many messages were ever published.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Returns the messages after the first `seen` ones; `None` if the record does not have all of them any more.
    #[must_use]
    pub fn messages_after(&self, seen: u64) -> Option<&[(Topic, Wake)]> {
        let missed = usize::try_from(self.published.checked_sub(seen)?).ok()?;
        self.messages
            .get(self.messages.len().checked_sub(missed)?..)
    }

    /// Returns the time of the record, which only a store without a clock needs.
    ///
    /// All times in such a record are by this clock. A client that has observed the record unchanged for some time of its
    /// own monotonic clock applies requests at the record's time plus that much, and writes the sum into the record. The
    /// observations of all clients follow one another, so this clock is never faster than theirs, and no clock of a
    /// machine can end a claim by a step.
    #[must_use]
    pub fn clock(&self) -> WallMillis {
        self.clock
    }

    /// Sets the time of the record.
    pub fn set_clock(&mut self, clock: WallMillis) {
        self.clock = clock;
    }

    /// Returns until when a waiter is considered alive; `None` if it is not in the queue of the fair lock.
    #[must_use]
    pub fn place(&self, owner: OwnerId) -> Option<WallMillis> {
        let mut places = self.shared.queue.iter().flat_map(|key| key.value.iter());
        let place = places.find(|(waiting, _)| *waiting == owner);
        place.map(|(_, alive)| *alive)
    }

    /// Returns whether the record differs from another one in nothing but until when the same waiters are considered alive.
    #[must_use]
    pub fn has_only_later_places_than(&self, before: &Record) -> bool {
        let owners = |record: &Record| -> Vec<OwnerId> {
            let places = record.shared.queue.iter().flat_map(|key| key.value.iter());
            places.map(|(owner, _)| *owner).collect()
        };
        let mut rest = self.clone();
        rest.shared.queue.clone_from(&before.shared.queue);
        owners(self) == owners(before) && rest == *before
    }

    /// Returns whether no key expires between two times. The outcome of a request is then the same at both.
    #[must_use]
    pub fn is_steady(&self, from: WallMillis, until: WallMillis) -> bool {
        self.expiries().all(|expires| match expires {
            Some(expires) => (from <= expires) == (until <= expires),
            None => true,
        })
    }

    /// Returns until when the record is of use; `None` for ever. It may be deleted after this time, by the clock that its
    /// times were written by.
    #[must_use]
    pub fn useful_until(&self) -> Option<WallMillis> {
        let mut last = WallMillis::default();
        for expires in self.expiries() {
            last = last.max(expires?);
        }
        Some(last)
    }

    /// Returns the times at which something in the record changes by itself.
    fn expiries(&self) -> impl Iterator<Item = Option<WallMillis>> {
        let own = [&self.bare, &self.braced].into_iter();
        let own = own.flat_map(|own| {
            let claim = own.claim.iter().map(|key| key.expires);
            claim.chain(own.reads.values().map(|key| key.expires))
        });
        let queue = self.shared.queue.iter().flat_map(|key| {
            let alive = key.value.iter().map(|(_, alive)| Some(*alive));
            alive.chain([key.expires])
        });
        let token = self.shared.token.iter().map(|key| key.expires);
        let marker = self.marker.iter().map(|marker| Some(marker.expires));
        own.chain(queue).chain(token).chain(marker)
    }
}

/// Returns the name that a request is about. A renewal of several claims is none of one record.
fn name_of(request: &Request) -> Option<&Name> {
    match request {
        Request::Acquire(ask) => Some(&ask.name),
        Request::Renew(ask) => ask.claims.first().map(|claim| &claim.name),
        Request::Release(ask) => Some(&ask.name),
        Request::Inspect(ask) => Some(&ask.name),
        Request::ForceRelease(ask) => Some(&ask.name),
        Request::Probe(_) => None,
    }
}

#[cfg(test)]
mod tests;
