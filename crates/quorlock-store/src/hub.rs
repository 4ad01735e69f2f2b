//! Who listens to the messages of which record, and which messages they have heard.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use quorlock_core::message::Wake;
use quorlock_core::node::record::{Record, Topic};
use quorlock_core::time::Time;
use quorlock_core::transport::{Listener, Subscription};

use crate::store::Key;
use crate::sync::Mutex;

/// A report that is this much behind is late. One that is further behind is about another record: the one before was
/// deleted.
const LATE: u64 = 8;

/// The listeners of one transport, by the key of their record.
#[derive(Default)]
pub(crate) struct Hubs(Mutex<State>);

#[derive(Default)]
struct State {
    hubs: BTreeMap<Key, Hub>,
    last: u64,
}

/// The listeners of one record.
#[derive(Default)]
struct Hub {
    listeners: BTreeMap<u64, (Topic, Arc<dyn Listener>)>,
    /// Whether changes are reported.
    is_live: bool,
    /// How many messages of the record are known; `None` if that is not known itself.
    heard: Option<u64>,
    /// The number of the write that stored the record, and when the client first knew it.
    write: Option<(u64, Time)>,
    look: Look,
    /// The watch of the store.
    watch: Option<Subscription>,
}

/// Whether the record is read because a report did not tell what it is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Look {
    /// It is not read.
    #[default]
    None,
    /// It is read.
    Once,
    /// It is read, and has changed since the read began, so it is read once more.
    Again,
}

/// What listeners are told, after the mutex is unlocked: one may wake a task that makes its next call on this thread.
#[must_use]
enum News {
    None,
    Live(Vec<Arc<dyn Listener>>),
    Messages(Vec<(Arc<dyn Listener>, Wake)>),
}

impl News {
    fn tell(self) {
        match self {
            News::None => {}
            News::Live(listeners) => listeners.iter().for_each(|listener| listener.live()),
            News::Messages(messages) => {
                for (listener, wake) in messages {
                    listener.wake(wake);
                }
            }
        }
    }
}

/// The result of [`Hubs::add`].
pub(crate) struct Added {
    pub(crate) number: u64,
    /// Whether it is the first listener of the record, so that the store must be watched.
    pub(crate) is_first: bool,
}

impl Hubs {
    /// Adds a listener, and tells it if changes are reported already.
    pub(crate) fn add(&self, key: &Key, topic: Topic, listener: Arc<dyn Listener>) -> Added {
        let mut state = self.0.lock();
        state.last += 1;
        let number = state.last;
        let is_first = !state.hubs.contains_key(key);
        let hub = state.hubs.entry(key.clone()).or_default();
        hub.listeners.insert(number, (topic, listener.clone()));
        let is_live = hub.is_live;
        drop(state);
        if is_live {
            listener.live();
        }
        Added { number, is_first }
    }

    /// Keeps the watch of the store while there are listeners.
    pub(crate) fn keep(&self, key: &Key, watch: Subscription) {
        let mut state = self.0.lock();
        let ended = match state.hubs.get_mut(key) {
            Some(hub) => hub.watch.replace(watch),
            None => Some(watch),
        };
        drop(state);
        drop(ended);
    }

    /// Removes a listener. The watch ends with the last one.
    pub(crate) fn remove(&self, key: &Key, number: u64) {
        let mut state = self.0.lock();
        let Some(hub) = state.hubs.get_mut(key) else {
            return;
        };
        let listener = hub.listeners.remove(&number);
        let hub = match hub.listeners.is_empty() {
            true => state.hubs.remove(key),
            false => None,
        };
        drop(state);
        drop((listener, hub));
    }

    /// Returns since when the client has known the record that a write has stored, if it was reported.
    pub(crate) fn since(&self, key: &Key, write: u64) -> Option<Time> {
        let state = self.0.lock();
        let (reported, since) = state.hubs.get(key)?.write?;
        (reported == write).then_some(since)
    }

    fn has(&self, key: &Key) -> bool {
        self.0.lock().hubs.contains_key(key)
    }

    /// Handles that changes are reported from now on, and that earlier ones may be lost.
    pub(crate) fn live(&self, key: &Key) {
        self.with(key, |hub| {
            hub.is_live = true;
            hub.heard = None;
            hub.all()
        });
    }

    /// Handles a report of the store that tells what the record is.
    pub(crate) fn changed(&self, now: Time, key: &Key, record: &[u8]) {
        self.with(key, |hub| match read(Some(record)) {
            Some((record, write)) => {
                hub.note(now, write);
                // Before the first read it is not known which of the messages are new.
                match hub.heard {
                    Some(_) => hub.hear(&record),
                    None => {
                        hub.heard = Some(record.published());
                        hub.all()
                    }
                }
            }
            // A record that is no record is reported by the next request.
            None => hub.gap(),
        });
    }

    /// Handles that a change of the record could not be read.
    pub(crate) fn gap(&self, key: &Key) {
        self.with(key, Hub::gap);
    }

    /// Handles a report of the store that does not tell what the record is. Returns whether it must be read now: it has listeners,
    /// and it is not being read.
    pub(crate) fn begin_look(&self, key: &Key) -> bool {
        let mut state = self.0.lock();
        let Some(hub) = state.hubs.get_mut(key) else {
            return false;
        };
        let before = hub.look;
        hub.look = match before {
            Look::None => Look::Once,
            Look::Once | Look::Again => Look::Again,
        };
        before == Look::None
    }

    /// Handles that the record was read. Returns whether that was the last time for now.
    pub(crate) fn end_look(&self, key: &Key) -> bool {
        let mut state = self.0.lock();
        let Some(hub) = state.hubs.get_mut(key) else {
            return true;
        };
        let before = hub.look;
        hub.look = match before {
            Look::None | Look::Once => Look::None,
            Look::Again => Look::Once,
        };
        before != Look::Again
    }

    /// Handles what a request has read: it is no older than the request.
    pub(crate) fn read(&self, now: Time, key: &Key, record: Option<&[u8]>) {
        if !self.has(key) {
            return;
        }
        match (record, read(record)) {
            (_, Some((record, write))) => self.with(key, |hub| {
                hub.note(now, write);
                hub.hear(&record)
            }),
            (None, None) => self.with(key, |hub| hub.hear(&Record::default())),
            // The request reports that it is no record.
            (Some(_), None) => {}
        }
    }

    /// Handles what a request has written in place of the record before.
    pub(crate) fn written(&self, key: &Key, before: &Record, after: &Record) {
        self.with(key, |hub| {
            hub.heard.get_or_insert(before.published());
            hub.hear(after)
        });
    }

    fn with(&self, key: &Key, handle: impl FnOnce(&mut Hub) -> News) {
        let news = {
            let mut state = self.0.lock();
            state.hubs.get_mut(key).map_or(News::None, handle)
        };
        news.tell();
    }
}

impl Hub {
    fn all(&self) -> News {
        News::Live(self.listeners.values().map(|(_, l)| l.clone()).collect())
    }

    fn gap(&mut self) -> News {
        self.heard = None;
        self.all()
    }

    fn note(&mut self, now: Time, write: u64) {
        if self.write.is_none_or(|(before, _)| before != write) {
            self.write = Some((write, now));
        }
    }

    /// Handles the state of the record.
    fn hear(&mut self, record: &Record) -> News {
        let published = record.published();
        let Some(heard) = self.heard else {
            self.heard = Some(published);
            return News::None;
        };
        if published < heard && heard - published <= LATE && published != 0 {
            return News::None;
        }
        self.heard = Some(published);
        match record.messages_after(heard) {
            Some(messages) => {
                let told = messages.iter().flat_map(|(topic, wake)| {
                    let listening = self.listeners.values().filter(move |(t, _)| t == topic);
                    listening.map(|(_, listener)| (listener.clone(), *wake))
                });
                News::Messages(told.collect())
            }
            None => self.all(),
        }
    }
}

fn read(record: Option<&[u8]>) -> Option<(Record, u64)> {
    Record::decode(record?).ok()
}

impl fmt::Debug for Hubs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hubs").finish_non_exhaustive()
    }
}
