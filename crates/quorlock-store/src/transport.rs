//! A lock node that is a store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use quorlock_core::marker::Process;
use quorlock_core::message::{Channel, Request};
use quorlock_core::name::Name;
use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
use quorlock_core::transport::{
    Call, Cause, Listener, Subscription, Transport, TransportError, Witness,
};

use crate::execute::Execute;
use crate::runtime::{StoreRuntime, Tokio};
use crate::service::Service;
use crate::store::{Key, Store, decode};
use crate::watch;

/// How long a call waits for its reply by default.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the check of a store waits for its answer.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Carries the requests of locks to a store. Clones are the same transport.
///
/// A request reads the record of its name and writes it back. Requests about one name that wait at the same time are
/// written together. The record that was read or written last is remembered: an acquire of a name that was free then, and
/// a renewal or a release of a claim that no client has changed, are one conditional write and nothing else. A refusal is one
/// read. With an acquire of a majority, the marker of the store is read after the write.
///
/// # Runtime
/// The transport spawns tasks on the tokio runtime in whose context it is used, unless it has another
/// [`StoreRuntime`].
#[derive(Clone)]
pub struct StoreTransport {
    service: Arc<Service>,
    poll_every: Duration,
}

impl StoreTransport {
    /// Creates a transport to a store, on tokio's clock.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        StoreTransport::with_runtime(store, Arc::new(Tokio))
    }

    /// Creates a transport to a store with another source of time, tasks and randomness.
    #[must_use]
    pub fn with_runtime(store: impl Store, runtime: Arc<dyn StoreRuntime>) -> Self {
        StoreTransport {
            service: Arc::new(Service::new(Arc::new(store), runtime, CALL_TIMEOUT)),
            poll_every: Duration::from_millis(250),
        }
    }

    /// Sets how long a call waits for its reply. Default: 2 s. One call of the store gets half of it, so that a write
    /// without a reply can be looked for.
    ///
    /// A conflict with another client's write, and a lost reply, are no reasons to fail before this time is over. The
    /// transport shares no memory with clones that were made before.
    #[must_use]
    pub fn call_timeout(self, timeout: Duration) -> Self {
        let Service { store, runtime, .. } = &*self.service;
        let service = Service::new(store.clone(), runtime.clone(), timeout);
        StoreTransport {
            service: Arc::new(service),
            ..self
        }
    }

    /// Sets how often a record with waiters is read again, on a store that cannot notify its clients. Default: 250 ms.
    ///
    /// Waiters of the same process are woken at once in any case.
    #[must_use]
    pub fn poll_every(self, every: Duration) -> Self {
        StoreTransport {
            poll_every: every,
            ..self
        }
    }
}

impl StoreTransport {
    /// Connects to the store, and checks that locks can use it: it answers, has its table, takes writes, and what is
    /// stored as its marker is one. Returns the process that answered. Waits for at most 10 s, because the first
    /// connection takes longer than a call.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub async fn check(&self) -> Result<Process, TransportError> {
        let Service { store, runtime, .. } = &*self.service;
        let key = Key::new(Key::MARKER);
        match select(store.read(&key), runtime.sleep(CHECK_TIMEOUT)).await {
            Either::Left((snapshot, _)) => {
                let snapshot = snapshot?;
                let stored = snapshot.stored.as_ref();
                stored.map_or(Ok(()), |stored| decode(&key, &stored.record).map(drop))?;
                Ok(snapshot.stamp.process)
            }
            Either::Right(_) => Err(TransportError::definite(
                Cause::TimedOut,
                format!("no answer in {CHECK_TIMEOUT:?}"),
            )),
        }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.service.store
    }
}

impl fmt::Debug for StoreTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreTransport")
            .field(&self.service.store)
            .finish()
    }
}

impl Transport for StoreTransport {
    fn call(&self, request: Request) -> Call {
        let execute = Execute {
            service: self.service.clone(),
            deadline: self.service.runtime.now() + self.service.call_timeout,
        };
        Box::pin(async move { execute.request(request).await })
    }

    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        watch::subscribe(&self.service, channel, listener, self.poll_every)
    }

    fn attend(&self, witness: Arc<dyn Witness>) -> Subscription {
        // The driver of a store reconnects by itself, and notifies no one. Waiters ask again when their pauses are over.
        drop(witness);
        Subscription::new(())
    }

    fn slot(&self, name: &Name) -> Result<Slot, UnfitName> {
        match name.stem() == Key::MARKER {
            true => Err(UnfitName::new(
                name.clone(),
                "the marker of the store is kept under this key: choose another name",
            )),
            false => Ok(Slot::WHOLE),
        }
    }

    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }

    fn address(&self) -> &str {
        self.service.store.address()
    }
}
