//! Quorlock in a table, whose statements are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::Locks;
use quorlock::transport::Subscription;
use quorlock_store::{
    Draft, Key, PostgresStore, ReadCall, Store, StoreTransport, SweepCall, Version, Watcher,
    WriteCall,
};

use super::program::{Failure, Job};

/// A store, and the number of statements that were sent to it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    store: PostgresStore,
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Table {
    /// Makes the table. Returns a client of it.
    pub(crate) async fn connect(job: &Job, address: &str) -> Result<(Locks, Table), Failure> {
        let table = Table {
            store: PostgresStore::new(address)?,
            reads: Arc::default(),
            writes: Arc::default(),
        };
        table.store.create_table().await?;
        let lease = Duration::from_millis(job.lease_millis);
        let locks = Locks::builder().watchdog_lease(lease);
        Ok((locks.on_node(StoreTransport::new(table.clone()))?, table))
    }

    pub(crate) fn statements(&self) -> Vec<(&'static str, u64)> {
        let count = |kind: &AtomicU64| kind.load(Ordering::Relaxed);
        vec![
            ("reads", count(&self.reads)),
            ("writes", count(&self.writes)),
        ]
    }
}

impl Store for Table {
    fn read(&self, key: &Key) -> ReadCall {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.read(key)
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.store.write_if(key, version, draft)
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        self.store.watch(key, watcher)
    }

    fn sweep(&self) -> SweepCall {
        self.store.sweep()
    }

    fn address(&self) -> &str {
        self.store.address()
    }
}
