//! A store in the memory of the process.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::Process;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::Subscription;

use crate::store::{
    Draft, Key, KeysCall, ReadCall, Snapshot, Stamp, Store, Stored, SweepCall, Version, Watcher,
    WriteCall, Written,
};
use crate::sync::{Mutex, MutexGuard};

/// A store in the memory of the process, for tests, and as the shortest example of a [`Store`]. Clones are the same store.
#[derive(Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Fn() -> Option<WallMillis> + Send + Sync>,
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    process: Process,
    records: BTreeMap<Key, (u64, Draft)>,
    watchers: BTreeMap<u64, (Key, Arc<dyn Watcher>)>,
    /// The last number that was given to a version or a watcher.
    last: u64,
}

impl Shelf {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl MemoryStore {
    /// Creates an empty store, whose clock is tokio's.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(|| Some(clock()))
    }

    /// Creates an empty store that reads its time by `clock`; `None` for a store without a clock.
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> Option<WallMillis> + Send + Sync + 'static) -> Self {
        let shelf = Shelf {
            process: Process(rand::random::<u64>() >> 12),
            ..Shelf::default()
        };
        MemoryStore {
            clock: Arc::new(clock),
            shelf: Arc::new(Mutex::new(shelf)),
        }
    }

    /// Lets another server take over, with all records.
    pub fn set_process(&self, process: Process) {
        self.shelf().process = process;
    }

    /// Deletes all records.
    pub fn clear(&self) {
        self.shelf().records.clear();
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shelf().records.len()
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn stamp(&self, shelf: &Shelf) -> Stamp {
        Stamp {
            now: (self.clock)(),
            process: shelf.process,
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl Store for MemoryStore {
    fn read(&self, key: &Key) -> ReadCall {
        let shelf = self.shelf();
        let stored = shelf.records.get(key).map(|(version, draft)| Stored {
            record: draft.record.clone(),
            version: Version::from(*version),
        });
        let stamp = self.stamp(&shelf);
        Box::pin(ready(Ok(Snapshot { stored, stamp })))
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let mut shelf = self.shelf();
        let present = shelf.records.get(key).map(|(number, _)| *number);
        if present.map(Version::from).as_ref() != version {
            return Box::pin(ready(Ok(Written::Conflict)));
        }
        let number = shelf.number();
        shelf.records.insert(key.clone(), (number, draft.clone()));
        let watching = shelf
            .watchers
            .values()
            .filter(|(watched, _)| watched == key);
        let watching: Vec<_> = watching.map(|(_, watcher)| watcher.clone()).collect();
        let stamp = self.stamp(&shelf);
        // Without the mutex: a watcher may wake a task that makes its next call on this thread.
        drop(shelf);
        for watcher in watching {
            watcher.changed(Some(&draft.record));
        }
        let version = Version::from(number);
        Box::pin(ready(Ok(Written::Stored { version, stamp })))
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        let id = {
            let mut shelf = self.shelf();
            let id = shelf.number();
            shelf.watchers.insert(id, (key.clone(), watcher.clone()));
            id
        };
        watcher.live();
        let store = self.clone();
        Some(Subscription::new(Unwatch { store, id }))
    }

    fn sweep(&self) -> SweepCall {
        let mut shelf = self.shelf();
        let before = shelf.records.len();
        if let Some(now) = (self.clock)() {
            let is_useful = |draft: &Draft| draft.useful_until.is_none_or(|until| now <= until);
            shelf.records.retain(|_, (_, draft)| is_useful(draft));
        }
        let swept = before - shelf.records.len();
        Box::pin(ready(Ok(u64::try_from(swept).unwrap_or(u64::MAX))))
    }

    fn keys(&self, after: Option<&Key>) -> KeysCall {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let shelf = self.shelf();
        let keys = shelf.records.range((from, Bound::Unbounded));
        let keys = keys.map(|(key, _)| key.clone());
        Box::pin(ready(Ok(keys.collect())))
    }

    fn address(&self) -> &str {
        "memory:"
    }
}

struct Unwatch {
    store: MemoryStore,
    id: u64,
}

impl Drop for Unwatch {
    fn drop(&mut self) {
        let watcher = self.store.shelf().watchers.remove(&self.id);
        drop(watcher);
    }
}

/// The clock of the store, which all its clients share because they are one process. It never goes back.
fn clock() -> WallMillis {
    static ZERO: std::sync::OnceLock<tokio::time::Instant> = std::sync::OnceLock::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the store's own clock, as a server has one"
    )]
    let now = tokio::time::Instant::now();
    let since: Duration = now.saturating_duration_since(*ZERO.get_or_init(|| now));
    // An arbitrary day, so that tokens look like those of a server.
    WallMillis(1_700_000_000_000).plus(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
