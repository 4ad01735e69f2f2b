//! Who listens to which channel, and what the server has yet to be told.
//!
//! Nothing is queued: listeners come and go, and the registry notes the channels that changed. The one task that has
//! the wake-up connection looks at it and tells the server the difference. What was subscribed and dropped before the
//! server heard of it leaves no trace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;
use tokio::sync::Notify;

use crate::sync::{Mutex, MutexGuard};

/// A channel's name.
pub(crate) type Channel = Arc<[u8]>;

/// A listener's entry in the registry; dropping it removes the entry.
pub(crate) struct ListenerHandle {
    registry: Arc<Registry>,
    channel: Channel,
    number: u64,
}

impl Drop for ListenerHandle {
    fn drop(&mut self) {
        let listener = self.registry.remove(&self.channel, self.number);
        // Outside of the lock, because dropping it may run code of the listener's.
        drop(listener);
    }
}

/// Who listens to what.
#[derive(Default)]
pub(crate) struct Registry {
    book: Mutex<Channels>,
    changed: Notify,
}

#[derive(Default)]
struct Channels {
    channels: BTreeMap<Channel, Entry>,
    /// Channels on which what is wanted and what the server knows may differ.
    unsettled: BTreeSet<Channel>,
    last_number: u64,
    /// The server has ended a subscription to a channel by itself: its slot has gone elsewhere.
    is_parted: bool,
    /// The number of the session, if there is one.
    session: Option<u64>,
    is_closed: bool,
}

impl Channels {
    fn draw(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The connection is gone: the server knows of nothing.
    fn forget(&mut self) {
        self.channels.retain(|_, entry| {
            entry.stage = ChannelStage::Unknown;
            !entry.listeners.is_empty()
        });
        self.unsettled = self.channels.keys().cloned().collect();
    }
}

/// What came of a new listener.
struct Added {
    number: u64,
    /// Messages flow already.
    is_live: bool,
    /// The caller must start a session, of this number.
    new_session: Option<u64>,
}

struct Entry {
    listeners: BTreeMap<u64, Arc<dyn Listener>>,
    stage: ChannelStage,
}

/// What the server knows of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChannelStage {
    Unknown,
    Asked,
    Live,
}

/// What the server must be told next.
pub(crate) enum Order {
    Subscribe(Vec<Channel>),
    Unsubscribe(Vec<Channel>),
}

/// A listener that was taken in, and what has to be done about it outside the registry's mutex.
pub(crate) struct Subscribed {
    pub(crate) handle: ListenerHandle,
    /// Messages flow already: the listener has to be told.
    pub(crate) is_live: bool,
    /// There was no session: one has to be started.
    pub(crate) new_session: Option<SessionGuard>,
}

impl Registry {
    /// Takes in a listener until its handle is dropped.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        channel: Channel,
        listener: &Arc<dyn Listener>,
    ) -> Subscribed {
        let added = self.add(&channel, listener);
        Subscribed {
            handle: ListenerHandle {
                registry: Arc::clone(self),
                channel,
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
        let new_session = match book.session {
            Some(_) => None,
            None => {
                let number = book.draw();
                book.session = Some(number);
                book.session
            }
        };
        Added {
            number,
            is_live: stage == ChannelStage::Live,
            new_session,
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
                // The confirmation finds that no listener is left.
                ChannelStage::Asked => {}
                ChannelStage::Live => {
                    book.unsettled.insert(Arc::clone(channel));
                    self.changed.notify_one();
                }
            }
        }
        listener
    }

    /// Waits until a listener came or went, or the session was nudged.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The session is to look again: its connection was closed.
    pub(crate) fn nudge(&self) {
        self.changed.notify_one();
    }

    /// What to tell the server next, at most so many channels at once.
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
                // Listeners are served first; this waits for the next order.
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
            // A listener that comes from now on asks anew, after the server was told.
            book.channels.remove(channel);
        }
        (!leaving.is_empty()).then_some(Order::Unsubscribe(leaving))
    }

    /// The server confirmed: messages flow.
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
        drop(book);
        for listener in listeners {
            listener.live();
        }
    }

    /// The server refused: these must be asked for again.
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

    /// Puts channels off, until they are recalled.
    pub(crate) fn put_off(&self, channels: &[Channel]) {
        let mut book = self.lock();
        for channel in channels {
            book.unsettled.remove(channel);
        }
    }

    /// Looks again at channels that were put off.
    pub(crate) fn recall(&self, channels: Vec<Channel>) {
        self.lock().unsettled.extend(channels);
    }

    /// The server published this.
    pub(crate) fn wake(&self, channel: &[u8], message: Wake) {
        let listeners: Vec<_> = match self.lock().channels.get(channel) {
            Some(entry) => entry.listeners.values().cloned().collect(),
            None => return,
        };
        for listener in listeners {
            listener.wake(message);
        }
    }

    /// The server says that a subscription has ended. Whether it has done so by itself.
    pub(crate) fn part(&self, channel: &[u8]) -> bool {
        let mut book = self.lock();
        let entry = book.channels.get(channel);
        // What was asked to end is not there any more, or there anew and not asked for yet.
        let is_wanted = entry.is_some_and(|entry| entry.stage != ChannelStage::Unknown);
        book.is_parted |= is_wanted;
        drop(book);
        if is_wanted {
            self.changed.notify_one();
        }
        is_wanted
    }

    /// Whether the server has ended a subscription by itself since this was last asked.
    pub(crate) fn take_parted(&self) -> bool {
        std::mem::take(&mut self.lock().is_parted)
    }

    /// Whether messages of the channel flow.
    pub(crate) fn is_live(&self, channel: &[u8]) -> bool {
        let book = self.lock();
        let entry = book.channels.get(channel);
        entry.is_some_and(|entry| entry.stage == ChannelStage::Live)
    }

    /// Whether no listener is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().channels.is_empty()
    }

    /// The transport is gone: the session ends.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Whether the transport is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The connection is gone: the server knows of nothing.
    pub(crate) fn forget(&self) {
        self.lock().forget();
    }

    /// Held for a few instructions, never across an await or while a listener is called.
    fn lock(&self) -> MutexGuard<'_, Channels> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to be the one session of a registry. Its drop, even together with the runtime, makes room for another.
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
        let is_over = book.is_closed || book.channels.is_empty();
        if is_over {
            // Under the same lock, so that the next listener starts another session.
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

#[cfg(test)]
mod tests;
