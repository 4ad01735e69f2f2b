//! A store at the other end of a network.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time};
use quorlock::transport::Subscription;
use quorlock_store::{
    Draft, Key, MemoryStore, Process, ReadCall, Store, StoreRuntime, StoreTransport,
    TransportError, Version, Watcher, WriteCall,
};

use crate::mailbox::Mailbox;
use crate::world::World;

/// A store in memory, whose calls are executed in separate tasks, when the schedule runs them. A later call may be executed
/// earlier.
#[derive(Clone, Debug)]
pub struct Shelf {
    store: MemoryStore,
    world: World,
}

impl Shelf {
    /// Creates an empty store.
    pub fn new(world: &World) -> Self {
        let clock = world.clone();
        let store = MemoryStore::with_clock(move || Some(clock.wall_clock()));
        // The same in each run of a schedule.
        store.set_process(Process(7));
        let world = world.clone();
        Shelf { store, world }
    }

    /// Returns a transport of its own to the store, as each client has one.
    pub fn transport(&self) -> StoreTransport {
        StoreTransport::with_runtime(self.clone(), Arc::new(self.world.clone()))
    }

    /// Executes a call in a task.
    fn far<T: Send + 'static>(
        &self,
        call: impl FnOnce(MemoryStore) -> Reply<T> + Send + 'static,
    ) -> Reply<T> {
        let answer = Arc::new(Mailbox::new());
        let (answered, store) = (answer.clone(), self.store.clone());
        let task = async move { answered.put(call(store).await) };
        Runtime::spawn(&self.world, Box::pin(task));
        Box::pin(async move { poll_fn(|cx| answer.poll_take(cx)).await })
    }
}

type Reply<T> = Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>;

impl Store for Shelf {
    fn read(&self, key: &Key) -> ReadCall {
        let key = key.clone();
        self.far(move |store| store.read(&key))
    }

    fn write_if(&self, key: &Key, version: Option<&Version>, draft: Draft) -> WriteCall {
        let (key, version) = (key.clone(), version.cloned());
        self.far(move |store| store.write_if(&key, version.as_ref(), draft))
    }

    fn watch(&self, key: &Key, watcher: Arc<dyn Watcher>) -> Option<Subscription> {
        self.store.watch(key, watcher)
    }

    fn address(&self) -> &str {
        "shelf:"
    }
}

impl StoreRuntime for World {
    fn now(&self) -> Time {
        Runtime::now(self)
    }

    fn sleep(&self, span: Duration) -> Task {
        let world = self.clone();
        Box::pin(async move { World::sleep(&world, span).await })
    }

    fn spawn(&self, task: Task) {
        Runtime::spawn(self, task);
    }

    fn random(&self) -> u64 {
        Runtime::random(self)
    }
}
