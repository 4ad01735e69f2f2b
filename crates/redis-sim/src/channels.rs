//! Subscriptions and published messages.

use std::collections::{BTreeMap, BTreeSet};

use crate::glob;
use crate::reply::Reply;
use crate::session::SessionId;

/// The subscriptions of all sessions, and messages that have not been written to them yet.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    exact: Listeners,
    patterns: Listeners,
    shards: Listeners,
    /// Number of subscriptions of each session.
    counts: BTreeMap<SessionId, usize>,
    outbox: Vec<(SessionId, Reply)>,
}

type Listeners = BTreeMap<Vec<u8>, BTreeSet<SessionId>>;

/// Whether a subscription names a channel or a pattern of channels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    Exactly,
    ByPattern,
    /// A channel of a shard, on the node that has its slot.
    InShard,
}

impl Channels {
    fn listeners(&mut self, named: Named) -> &mut Listeners {
        match named {
            Named::Exactly => &mut self.exact,
            Named::ByPattern => &mut self.patterns,
            Named::InShard => &mut self.shards,
        }
    }

    pub(crate) fn subscribe(&mut self, session: SessionId, named: Named, channel: &[u8]) {
        let listeners = self.listeners(named).entry(channel.to_vec()).or_default();
        if listeners.insert(session) {
            *self.counts.entry(session).or_default() += 1;
        }
    }

    pub(crate) fn unsubscribe(&mut self, session: SessionId, named: Named, channel: &[u8]) {
        let all = self.listeners(named);
        let Some(listeners) = all.get_mut(channel) else {
            return;
        };
        let had = listeners.remove(&session);
        if listeners.is_empty() {
            all.remove(channel);
        }
        if had && let Some(count) = self.counts.get_mut(&session) {
            *count -= 1;
        }
    }

    /// Returns the channels or patterns that a session is subscribed to.
    pub(crate) fn of(&mut self, session: SessionId, named: Named) -> Vec<Vec<u8>> {
        let all = self.listeners(named).iter();
        let own = all.filter(|(_, listeners)| listeners.contains(&session));
        own.map(|(channel, _)| channel.clone()).collect()
    }

    /// Returns the number of subscriptions of a session.
    pub(crate) fn count(&self, session: SessionId) -> usize {
        self.counts.get(&session).copied().unwrap_or(0)
    }

    pub(crate) fn forget(&mut self, session: SessionId) {
        for named in [Named::Exactly, Named::ByPattern, Named::InShard] {
            for channel in self.of(session, named) {
                self.unsubscribe(session, named, &channel);
            }
        }
        self.counts.remove(&session);
        self.outbox.retain(|(other, _)| *other != session);
    }

    /// Publishes a message. Returns the number of receivers.
    pub(crate) fn publish(&mut self, channel: &[u8], payload: &[u8]) -> usize {
        let before = self.outbox.len();
        for session in self.exact.get(channel).into_iter().flatten() {
            let message = ["message".as_bytes(), channel, payload].map(Reply::bulk);
            self.outbox.push((*session, Reply::Push(message.to_vec())));
        }
        let fitting = self
            .patterns
            .iter()
            .filter(|(pattern, _)| glob::matches(pattern, channel));
        for (pattern, sessions) in fitting {
            for session in sessions {
                let message = ["pmessage".as_bytes(), pattern, channel, payload].map(Reply::bulk);
                self.outbox.push((*session, Reply::Push(message.to_vec())));
            }
        }
        self.outbox.len() - before
    }

    /// Publishes a message on a channel of a shard, on this node only. Returns the number of receivers.
    pub(crate) fn publish_in_shard(&mut self, channel: &[u8], payload: &[u8]) -> usize {
        let before = self.outbox.len();
        for session in self.shards.get(channel).into_iter().flatten() {
            let message = ["smessage".as_bytes(), channel, payload].map(Reply::bulk);
            self.outbox.push((*session, Reply::Push(message.to_vec())));
        }
        self.outbox.len() - before
    }

    /// Ends the subscriptions to channels of shards that are no longer on this node, and notifies their sessions.
    pub(crate) fn leave_shards(&mut self, is_here: impl Fn(&[u8]) -> bool) {
        let gone = self.shards.keys().filter(|channel| !is_here(channel));
        for channel in gone.cloned().collect::<Vec<_>>() {
            let sessions = self.shards.get(&channel).cloned().unwrap_or_default();
            for session in sessions {
                self.unsubscribe(session, Named::InShard, &channel);
                let left = Reply::count(self.count(session));
                let told = vec![Reply::bulk("sunsubscribe"), Reply::bulk(&channel), left];
                self.outbox.push((session, Reply::Push(told)));
            }
        }
    }

    pub(crate) fn take_messages(&mut self) -> Vec<(SessionId, Reply)> {
        std::mem::take(&mut self.outbox)
    }

    /// Returns the channels that have listeners by name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.exact.keys()
    }

    /// Returns the number of listeners to this channel by name.
    pub(crate) fn listeners_of(&self, channel: &[u8]) -> usize {
        self.exact.get(channel).map_or(0, BTreeSet::len)
    }

    /// Returns the number of patterns that have listeners.
    pub(crate) fn patterns(&self) -> usize {
        self.patterns.len()
    }
}
