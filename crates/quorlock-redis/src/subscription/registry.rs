//! The listeners of each channel, and the changes of subscriptions that the server must still be sent.
//!
//! Changes are not queued. When listeners come and go, the registry records the changed channels. The task that has the
//! wake-up connection reads them and sends the server the difference. A listener that is removed before that has no
//! effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;
use tokio::sync::Notify;

pub(crate) use self::topic::Topic;
use super::claims::Claims;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::{self, Instant};

/// The name of a channel.
pub(crate) type Channel = Arc<[u8]>;

/// A listener's entry in the registry. Dropping it removes the entry.
pub(crate) struct ListenerHandle {
    registry: Arc<Registry>,
    topic: Topic,
    number: u64,
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        let listener = match &self.topic {
            Topic::Channel(channel) => self.registry.remove(channel, self.number),
            Topic::Claim(claim) => self.registry.lock().claims.remove(claim, self.number),
        };
        // Outside the mutex, because the drop may run the listener's code, which may call this registry again.
        drop(listener);
    }
}

/// The listeners of a server's channels.
#[derive(Default)]
pub(crate) struct Registry {
    book: Mutex<Channels>,
    changed: Notify,
}

#[derive(Default)]
struct Channels {
    channels: BTreeMap<Channel, Entry>,
    claims: Claims,
    /// Until when the server is not asked to report changes of keys.
    unreported_until: Option<Instant>,
    /// Channels whose subscription on the server may differ from what is wanted.
    unsettled: BTreeSet<Channel>,
    last_number: u64,
    /// Channels whose subscriptions the server has ended by itself, because their slot has moved.
    parted: BTreeSet<Channel>,
    /// The number of the session, if there is one.
    session: Option<u64>,
    is_closed: bool,
}

impl Channels {
    fn draw(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the number of the session that the caller must start, if there is none.
    fn begin_session(&mut self) -> Option<u64> {
        if self.session.is_some() {
            return None;
        }
        let number = self.draw();
        self.session = Some(number);
        self.session
    }

    fn is_unreported(&self) -> bool {
        self.unreported_until
            .is_some_and(|until| timer::now() < until)
    }

    fn is_empty(&self) -> bool {
        self.channels.is_empty() && (self.claims.is_empty() || self.is_unreported())
    }

    /// Records that the connection has ended, and with it all subscriptions on the server.
    fn forget(&mut self) {
        self.channels.retain(|_, entry| {
            entry.stage = ChannelStage::Unknown;
            !entry.listeners.is_empty()
        });
        self.unsettled = self.channels.keys().cloned().collect();
        self.parted.clear();
        self.claims.ask_again();
    }
}

/// The result of adding a listener.
struct Added {
    number: u64,
    /// Whether the channel is subscribed already.
    is_live: bool,
    /// The number of the session that the caller must start, if any.
    new_session: Option<u64>,
}

struct Entry {
    listeners: BTreeMap<u64, Arc<dyn Listener>>,
    stage: ChannelStage,
}

/// The state of a channel's subscription on the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChannelStage {
    Unknown,
    Asked,
    Live,
}

/// The next change to send to the server.
pub(crate) enum Order {
    Subscribe(Vec<Channel>),
    Unsubscribe(Vec<Channel>),
}

/// A new listener, and what to do about it outside the registry's mutex.
pub(crate) struct Subscribed {
    pub(crate) handle: ListenerHandle,
    /// Whether the channel is subscribed already: the caller notifies the listener.
    pub(crate) is_live: bool,
    /// The session that the caller must start, if there was none.
    pub(crate) new_session: Option<SessionGuard>,
}

impl Registry {
    /// Adds a listener until its handle is dropped.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        topic: Topic,
        listener: &Arc<dyn Listener>,
    ) -> Subscribed {
        let added = match &topic {
            Topic::Channel(channel) => self.add(channel, listener),
            Topic::Claim(claim) => self.watch(claim, listener),
        };
        Subscribed {
            handle: ListenerHandle {
                registry: Arc::clone(self),
                topic,
                number: added.number,
            },
            is_live: added.is_live,
            new_session: added.new_session.map(|number| SessionGuard {
                registry: Arc::clone(self),
                number,
            }),
        }
    }

    fn add(&self, channel: &Channel, listener: &Arc<dyn Listener>) -> Added {
        let mut book = self.lock();
        let number = book.draw();
        let entry = book
            .channels
            .entry(Arc::clone(channel))
            .or_insert_with(|| Entry {
                listeners: BTreeMap::new(),
                stage: ChannelStage::Unknown,
            });
        entry.listeners.insert(number, Arc::clone(listener));
        let stage = entry.stage;
        if stage == ChannelStage::Unknown {
            book.unsettled.insert(Arc::clone(channel));
            self.changed.notify_one();
        }
        Added {
            number,
            is_live: stage == ChannelStage::Live,
            new_session: book.begin_session(),
        }
    }

    fn remove(&self, channel: &Channel, number: u64) -> Option<Arc<dyn Listener>> {
        let mut book = self.lock();
        let entry = book.channels.get_mut(channel)?;
        let listener = entry.listeners.remove(&number);
        if entry.listeners.is_empty() {
            match entry.stage {
                ChannelStage::Unknown => {
                    book.channels.remove(channel);
                    book.unsettled.remove(channel);
                }
                // The confirmation finds that there is no listener left, and ends the subscription.
                ChannelStage::Asked => {}
                ChannelStage::Live => {
                    book.unsettled.insert(Arc::clone(channel));
                    self.changed.notify_one();
                }
            }
        }
        listener
    }

    /// Waits until a listener was added or removed, or the session was nudged.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Wakes the session, whose connection was closed.
    pub(crate) fn nudge(&self) {
        self.changed.notify_one();
    }

    /// Returns the next change to send to the server, of at most `most` channels.
    pub(crate) fn next_order(&self, most: usize) -> Option<Order> {
        let mut book = self.lock();
        let book = &mut *book;
        let (mut joining, mut leaving) = (Vec::new(), Vec::new());
        let mut later = BTreeSet::new();
        while let Some(channel) = book.unsettled.pop_first() {
            if joining.len() == most || leaving.len() == most {
                later.insert(channel);
                break;
            }
            let Some(entry) = book.channels.get_mut(&channel) else {
                continue;
            };
            match (entry.stage, entry.listeners.is_empty()) {
                (ChannelStage::Unknown, false) => {
                    entry.stage = ChannelStage::Asked;
                    joining.push(channel);
                }
                // New listeners come first. This channel waits for the next order.
                (ChannelStage::Live, true) if !joining.is_empty() => {
                    later.insert(channel);
                }
                (ChannelStage::Live, true) => leaving.push(channel),
                _ => {}
            }
        }
        book.unsettled.append(&mut later);
        if !joining.is_empty() {
            book.unsettled.extend(leaving);
            return Some(Order::Subscribe(joining));
        }
        for channel in &leaving {
            // A listener that is added from now on subscribes again, after the server was sent this order.
            book.channels.remove(channel);
        }
        (!leaving.is_empty()).then_some(Order::Unsubscribe(leaving))
    }

    /// Records that the server has confirmed subscriptions, and notifies the listeners.
    pub(crate) fn confirmed(&self, channels: &[Channel]) {
        let mut listeners = Vec::new();
        let mut book = self.lock();
        for channel in channels {
            let Some(entry) = book.channels.get_mut(channel) else {
                continue;
            };
            entry.stage = ChannelStage::Live;
            listeners.extend(entry.listeners.values().cloned());
            if entry.listeners.is_empty() {
                book.unsettled.insert(Arc::clone(channel));
            }
        }
        // Outside the mutex, because a listener's code may call this registry again.
        drop(book);
        for listener in listeners {
            listener.live();
        }
    }

    /// Records that the server has refused subscriptions, which must be requested again.
    pub(crate) fn refused(&self, channels: &[Channel]) {
        let mut book = self.lock();
        for channel in channels {
            let Some(entry) = book.channels.get_mut(channel) else {
                continue;
            };
            entry.stage = ChannelStage::Unknown;
            if entry.listeners.is_empty() {
                book.channels.remove(channel);
            } else {
                book.unsettled.insert(Arc::clone(channel));
            }
        }
    }

    /// Puts channels off until they are recalled.
    pub(crate) fn put_off(&self, channels: &[Channel]) {
        let mut book = self.lock();
        for channel in channels {
            book.unsettled.remove(channel);
        }
    }

    /// Recalls channels that were put off.
    pub(crate) fn recall(&self, channels: Vec<Channel>) {
        self.lock().unsettled.extend(channels);
    }

    /// Wakes the listeners of a channel on which the server has published a message.
    pub(crate) fn wake(&self, channel: &[u8], message: Wake) {
        let listeners: Vec<_> = match self.lock().channels.get(channel) {
            Some(entry) => entry.listeners.values().cloned().collect(),
            None => return,
        };
        for listener in listeners {
            listener.wake(message);
        }
    }

    /// Records that a subscription has ended. Returns whether the server has ended it by itself.
    pub(crate) fn part(&self, channel: &[u8]) -> bool {
        let mut book = self.lock();
        let known = book.channels.get_key_value(channel);
        // If this client has ended the subscription, the channel was removed, or was added again and not yet requested.
        let wanted = known.filter(|(_, entry)| entry.stage != ChannelStage::Unknown);
        let wanted = wanted.map(|(channel, _)| Arc::clone(channel));
        let is_wanted = wanted.is_some();
        book.parted.extend(wanted);
        drop(book);
        if is_wanted {
            self.changed.notify_one();
        }
        is_wanted
    }

    /// Returns the channels whose subscriptions the server has ended by itself since the last call.
    pub(crate) fn take_parted(&self) -> BTreeSet<Channel> {
        std::mem::take(&mut self.lock().parted)
    }

    /// Returns those channels that are subscribed and have listeners. The caller subscribes to them again.
    pub(crate) fn renew(&self, mut channels: Vec<Channel>) -> Vec<Channel> {
        let mut book = self.lock();
        channels.retain(|channel| {
            let entry = book.channels.get_mut(channel);
            let entry = entry.filter(|entry| entry.stage == ChannelStage::Live);
            let Some(entry) = entry.filter(|entry| !entry.listeners.is_empty()) else {
                return false;
            };
            entry.stage = ChannelStage::Asked;
            true
        });
        channels
    }

    /// Whether the channel is subscribed.
    pub(crate) fn is_live(&self, channel: &[u8]) -> bool {
        let book = self.lock();
        let entry = book.channels.get(channel);
        entry.is_some_and(|entry| entry.stage == ChannelStage::Live)
    }

    /// Whether there is no listener left.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    /// Records that the transport was dropped: the session ends.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Whether the transport was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Records that the connection has ended, and with it all subscriptions on the server.
    pub(crate) fn forget(&self) {
        self.lock().forget();
    }

    /// The mutex is held for a few instructions, never across an await or while a listener is called.
    fn lock(&self) -> MutexGuard<'_, Channels> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to be the only session of a registry. Its drop, which also happens when the runtime ends, allows
/// another session.
pub(crate) struct SessionGuard {
    registry: Arc<Registry>,
    number: u64,
}

impl SessionGuard {
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Ends the session if there is nothing to do.
    pub(crate) fn is_over(&self) -> bool {
        let mut book = self.registry.lock();
        let is_over = book.is_closed || book.is_empty();
        if is_over {
            // Under the same lock as the check, so that the next listener starts another session instead of waiting for
            // this one.
            book.session = None;
        }
        is_over
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        let mut book = self.registry.lock();
        if book.session == Some(self.number) {
            book.session = None;
            book.forget();
        }
    }
}

mod losses;
#[cfg(test)]
mod tests;
mod topic;
