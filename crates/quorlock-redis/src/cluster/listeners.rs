//! Who listens to which channel of a cluster, and at which server.
//!
//! A release is published by the server that has the name, so that is where its channel is listened to: it counts those who hear
//! it. What listens moves when the slot does.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, Weak};

use quorlock_core::slot::Slot;
use quorlock_core::transport::Listener;

use crate::server::Server;
use crate::subscription::registry::ListenerHandle;
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
    channel: Vec<u8>,
    slot: Slot,
    listener: Arc<dyn Listener>,
    /// `None` where the slot has had no owner since.
    hears: Option<Hears>,
}

/// Where one listens.
struct Hears {
    /// It does not keep the server: a client that is dropped ends what its listeners hear.
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
    /// Takes in a listener until the handle is dropped. It hears nothing before [`ClusterRegistry::settle`].
    pub(super) fn add(
        self: &Arc<Self>,
        channel: Vec<u8>,
        slot: Slot,
        listener: Arc<dyn Listener>,
    ) -> EarHandle {
        let mut book = self.lock();
        book.last_number += 1;
        let number = book.last_number;
        let ear = ClusterListener {
            channel,
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

    /// Has each listen at the owner of its slot. One whose slot has no owner goes on where it was.
    ///
    /// What it begins to listen to tells it to look again, so that what was published between the two is not missed.
    pub(super) fn settle(&self, owner: impl Fn(Slot) -> Option<Arc<Server>>) {
        let book = self.lock();
        let ears = book.ears.iter().filter_map(|(number, ear)| {
            let server = owner(ear.slot).filter(|server| !ear.hears(server))?;
            Some((*number, server))
        });
        let moves: Vec<_> = ears.collect();
        drop(book);
        for (number, server) in moves {
            self.listen(number, &server);
        }
    }

    /// Has one listen at this server.
    pub(super) fn listen(&self, number: u64, server: &Arc<Server>) {
        let book = self.lock();
        let Some(ear) = book.ears.get(&number) else {
            return;
        };
        let (channel, listener) = (ear.channel.clone(), Arc::clone(&ear.listener));
        drop(book);
        // Outside of the lock, because it may tell the listener something.
        let hears = Hears {
            server: Arc::downgrade(server),
            _handle: server.wakes.subscribe(channel, listener),
        };
        let mut book = self.lock();
        let before = match book.ears.get_mut(&number) {
            Some(ear) => ear.hears.replace(hears),
            // It was dropped meanwhile.
            None => Some(hears),
        };
        drop(book);
        drop(before);
    }

    /// Held for a few instructions, never across an await or while a listener is called.
    fn lock(&self) -> MutexGuard<'_, ClusterListeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener's place; dropping it ends the listening.
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
        // Outside of the lock, because dropping it may run code of the listener's.
        drop(ear);
    }
}
