//! A store whose calls pass through functions of the test, and requests for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::fencing::Fence;
use quorlock_core::lease::Lease;
use quorlock_core::message::{Access, Acquire, Mode, Release, Reply, Request, Retention};
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Subscription, Transport, TransportError};
use quorlock_store::{
    Draft, Key, MemoryStore, ReadCall, Store, StoreTransport, SweepCall, Version, Watcher,
    WriteCall,
};

type OnRead = dyn Fn(&MemoryStore, &Key) -> ReadCall + Send + Sync;
type OnWrite = dyn Fn(&MemoryStore, &Key, Option<&Version>, Draft) -> WriteCall + Send + Sync;
type OnWatch = dyn Fn(&MemoryStore, &Key, Arc<dyn Watcher>) -> Option<Subscription> + Send + Sync;

/// A store in memory whose calls can be changed.
#[derive(Clone)]
pub(crate) struct Wrapped {
    pub(crate) store: MemoryStore,
    address: String,
    on_read: Arc<OnRead>,
    on_write: Arc<OnWrite>,
    on_watch: Arc<OnWatch>,
}

impl Wrapped {
    pub(crate) fn new(store: &MemoryStore) -> Self {
        Wrapped {
            store: store.clone(),
            address: "memory:".to_owned(),
            on_read: Arc::new(MemoryStore::read),
            on_write: Arc::new(MemoryStore::write_if),
            on_watch: Arc::new(MemoryStore::watch),
        }
    }

    pub(crate) fn at(mut self, address: &str) -> Self {
        self.address = address.to_owned();
        self
    }

    pub(crate) fn on_read(
        mut self,
        read: impl Fn(&MemoryStore, &Key) -> ReadCall + Send + Sync + 'static,
    ) -> Self {
        self.on_read = Arc::new(read);
        self
    }

    pub(crate) fn on_write(
        mut self,
        write: impl Fn(&MemoryStore, &Key, Option<&Version>, Draft) -> WriteCall + Send + Sync + 'static,
    ) -> Self {
        self.on_write = Arc::new(write);
        self
    }

    pub(crate) fn on_watch(
        mut self,
        watch: impl Fn(&MemoryStore, &Key, Arc<dyn Watcher>) -> Option<Subscription>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.on_watch = Arc::new(watch);
        self
    }
}

impl Store for Wrapped {
    fn read(&self, key: &Key) -> ReadCall {
        (self.on_read)(&self.store, key)
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        (self.on_write)(&self.store, key, version, draft)
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        (self.on_watch)(&self.store, key, watcher)
    }

    fn sweep(&self) -> SweepCall {
        self.store.sweep()
    }

    fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

pub(crate) fn owner(client: u128, number: u64) -> OwnerId {
    let client = ClientId::from_random(client);
    OwnerId { client, number }
}

pub(crate) fn acquire(owner: OwnerId, lease: Duration) -> Request {
    Request::Acquire(Acquire {
        name: Name::new("a").unwrap(),
        access: Access::Plain,
        owner,
        count: 1,
        lease: Lease::new(lease).unwrap(),
        fence: Fence::Mint {
            floor: WallMillis(0),
            slack_millis: u64::MAX,
        },
        retention: Retention::Millis(1_000_000),
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    })
}

pub(crate) fn release(owner: OwnerId) -> Request {
    Request::Release(Release {
        name: Name::new("a").unwrap(),
        mode: Mode::Plain,
        owner,
        count: 0,
    })
}

pub(crate) async fn ask(
    transport: &StoreTransport,
    request: Request,
) -> Result<Reply, TransportError> {
    transport.call(request).await
}

/// Another client writes the record: what it makes of it is what `request` makes of it.
pub(crate) async fn another_writes(store: &MemoryStore, request: Request) {
    let other = StoreTransport::new(store.clone());
    other.call(request).await.unwrap();
}
