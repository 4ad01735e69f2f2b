//! The listeners of a cluster: the channel of each, and the server at which it is subscribed.
//!
//! The server that stores a name publishes its release. Listeners subscribe there, so that this server counts them.
//! When a slot moves, its listeners move, too.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

use quorlock_core::slot::Slot;
use quorlock_core::transport::Listener;

use crate::server::Server;
use crate::subscription::registry::{ListenerHandle, Topic};
use crate::sync::{Mutex, MutexGuard};

/// The listeners of one client.
#[derive(Default)]
pub(super) struct ClusterRegistry(Mutex<ClusterListeners>);

#[derive(Default)]
struct ClusterListeners {
    ears: BTreeMap<u64, ClusterListener>,
    last_number: u64,
}

struct ClusterListener {
    topic: Topic,
    slot: Slot,
    listener: Arc<dyn Listener>,
    /// Where the listener is subscribed; `None` if the slot has had no owner since the listener was added.
    hears: Option<Hears>,
}

/// The subscription of a listener at one server.
struct Hears {
    /// Weak, so that a dropped client ends the subscriptions of its listeners.
    server: Weak<Server>,
    _handle: ListenerHandle,
}

impl ClusterListener {
    fn hears(&self, server: &Arc<Server>) -> bool {
        let hears = self.hears.as_ref();
        hears.is_some_and(|hears| hears.server.as_ptr() == Arc::as_ptr(server))
    }
}

impl ClusterRegistry {
    /// Adds a listener until the handle is dropped. The listener gets nothing before [`ClusterRegistry::settle`].
    pub(super) fn add(
        self: &Arc<Self>,
        topic: Topic,
        slot: Slot,
        listener: Arc<dyn Listener>,
    ) -> EarHandle {
        let mut book = self.lock();
        book.last_number += 1;
        let number = book.last_number;
        let ear = ClusterListener {
            topic,
            slot,
            listener,
            hears: None,
        };
        book.ears.insert(number, ear);
        drop(book);
        EarHandle {
            ears: Arc::clone(self),
            number,
        }
    }

    /// Subscribes each listener at the owner of its slot. A listener whose slot has no owner stays where it is.
    ///
    /// The new subscription makes its listener check again. So a release that was published between the two
    /// subscriptions is not missed.
    pub(super) fn settle(&self, owner: impl Fn(Slot) -> Option<Arc<Server>>) {
        // Until nothing is left to move: another thread may change the map and settle a listener before this one subscribes
        // it at the owner from before.
        loop {
            let book = self.lock();
            let ears = book.ears.iter().filter_map(|(number, ear)| {
                let server = owner(ear.slot).filter(|server| !ear.hears(server))?;
                Some((*number, server))
            });
            let moves: Vec<_> = ears.collect();
            drop(book);
            if moves.is_empty() {
                return;
            }
            for (number, server) in moves {
                self.listen(number, &server);
            }
        }
    }

    /// Whether a listener is subscribed at this server, or has been dropped.
    pub(super) fn is_at(&self, number: u64, server: &Arc<Server>) -> bool {
        let book = self.lock();
        let ear = book.ears.get(&number);
        ear.is_none_or(|ear| ear.hears(server))
    }

    /// Subscribes one listener at this server.
    pub(super) fn listen(&self, number: u64, server: &Arc<Server>) {
        let book = self.lock();
        let Some(ear) = book.ears.get(&number) else {
            return;
        };
        let (topic, listener) = (ear.topic.clone(), Arc::clone(&ear.listener));
        drop(book);
        // Outside the mutex, because it may call the listener, which may call this registry again.
        let hears = Hears {
            server: Arc::downgrade(server),
            _handle: server.wakes.subscribe(topic, listener),
        };
        let mut book = self.lock();
        let before = match book.ears.get_mut(&number) {
            Some(ear) => ear.hears.replace(hears),
            // The listener was dropped in the meantime.
            None => Some(hears),
        };
        drop(book);
        drop(before);
    }

    /// The mutex is held for a few instructions, never across an await or while a listener is called.
    fn lock(&self) -> MutexGuard<'_, ClusterListeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener's entry. Dropping it ends the subscription.
pub(super) struct EarHandle {
    ears: Arc<ClusterRegistry>,
    number: u64,
}

impl EarHandle {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for EarHandle {
    fn drop(&mut self) {
        let ear = self.ears.lock().ears.remove(&self.number);
        // Outside the mutex, because the drop may run the listener's code, which may call this registry again.
        drop(ear);
    }
}
