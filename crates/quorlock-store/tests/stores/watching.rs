//! Wake-ups: from reports of the store, from reads, and after gaps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use quorlock::Locks;
use quorlock_core::message::{Channel, Wake};
use quorlock_core::name::Name;
use quorlock_core::transport::{Cause, Listener, Subscription, Transport, TransportError};
use quorlock_store::{Key, MemoryStore, Store, StoreTransport, Watcher};
use tokio::time::{Instant, sleep, timeout};

use crate::wrapped::{Wrapped, acquire, another_writes, ask, owner, release};
use crate::{MILLI, SECOND};

#[derive(Default)]
struct Ear {
    lives: AtomicUsize,
    wakes: Mutex<Vec<Wake>>,
}

impl Ear {
    fn taken(&self) -> (usize, usize) {
        let wakes = std::mem::take(&mut *self.wakes.lock().unwrap());
        (self.lives.swap(0, Ordering::SeqCst), wakes.len())
    }
}

impl Listener for Ear {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    fn wake(&self, message: Wake) {
        self.wakes.lock().unwrap().push(message);
    }
}

fn channel() -> Channel {
    Channel::Lock(Name::new("a").unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_release_wakes_the_listeners_of_all_clients_once() {
    let store = MemoryStore::new();
    let transports = [(); 2].map(|()| StoreTransport::new(store.clone()));
    let ears = [(); 2].map(|()| Arc::new(Ear::default()));
    let mut subscriptions = Vec::new();
    for (transport, ear) in transports.iter().zip(&ears) {
        subscriptions.push(transport.subscribe(&channel(), ear.clone()));
        assert_eq!(ear.taken(), (1, 0));
        // A waiter asks again when it hears that reports begin.
        ask(transport, release(owner(7, 1))).await.unwrap();
    }
    for number in 0..20 {
        ask(&transports[0], acquire(owner(1, number), SECOND))
            .await
            .unwrap();
        assert_eq!([ears[0].taken(), ears[1].taken()], [(0, 0); 2]);
        ask(&transports[0], release(owner(1, number)))
            .await
            .unwrap();
        assert_eq!([ears[0].taken(), ears[1].taken()], [(0, 1); 2]);
    }
    drop(subscriptions);
    ask(&transports[0], acquire(owner(1, 99), SECOND))
        .await
        .unwrap();
    ask(&transports[0], release(owner(1, 99))).await.unwrap();
    assert_eq!([ears[0].taken(), ears[1].taken()], [(0, 0); 2]);
}

/// A store whose reports are made by a test, and a client that listens.
struct Reported {
    store: MemoryStore,
    watcher: Arc<dyn Watcher>,
    ear: Arc<Ear>,
    _transport: StoreTransport,
    _subscription: Subscription,
}

impl Reported {
    async fn new() -> Self {
        let reports: Arc<Mutex<Option<Arc<dyn Watcher>>>> = Arc::default();
        let store = MemoryStore::new();
        let kept = reports.clone();
        let wrapped = Wrapped::new(&store).on_watch(move |_, _, watcher| {
            watcher.live();
            *kept.lock().unwrap() = Some(watcher);
            Some(Subscription::new(()))
        });
        let transport = StoreTransport::new(wrapped);
        let ear = Arc::new(Ear::default());
        let subscription = transport.subscribe(&channel(), ear.clone());
        ask(&transport, release(owner(7, 1))).await.unwrap();
        ear.taken();
        let watcher = reports.lock().unwrap().clone().unwrap();
        Reported {
            store,
            watcher,
            ear,
            _transport: transport,
            _subscription: subscription,
        }
    }

    async fn record(&self) -> Vec<u8> {
        let stored = self.store.read(&Key::new("a")).await.unwrap().stored;
        stored.unwrap().record
    }

    /// Lets another client acquire and release the lock as often as this.
    async fn pass(&self, times: u64) {
        for number in 0..times {
            another_writes(&self.store, acquire(owner(2, number), SECOND)).await;
            another_writes(&self.store, release(owner(2, number))).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_tells_each_release_once() {
    let reported = Reported::new().await;
    let (watcher, ear) = (&reported.watcher, &reported.ear);
    reported.pass(1).await;
    let first = reported.record().await;
    watcher.changed(Some(&first));
    assert_eq!(ear.taken(), (0, 1));
    watcher.changed(Some(&first));
    assert_eq!(ear.taken(), (0, 0), "the same report again");
    reported.pass(3).await;
    let later = reported.record().await;
    watcher.changed(Some(&later));
    assert_eq!(ear.taken(), (0, 3), "three releases in one report");
    watcher.changed(Some(&first));
    assert_eq!(ear.taken(), (0, 0), "a late report");
    watcher.changed(None);
    sleep(MILLI).await;
    assert_eq!(ear.taken(), (0, 0), "nothing new");
    reported.pass(2).await;
    watcher.changed(None);
    watcher.changed(None);
    sleep(MILLI).await;
    assert_eq!(
        ear.taken(),
        (0, 2),
        "two releases that the report does not tell"
    );
}

#[tokio::test(start_paused = true)]
async fn a_report_after_a_gap_tells_listeners_to_look_again() {
    let reported = Reported::new().await;
    let (watcher, ear) = (&reported.watcher, &reported.ear);
    reported.pass(1).await;
    watcher.changed(Some(&reported.record().await));
    assert_eq!(ear.taken(), (0, 1));
    reported.pass(9).await;
    watcher.changed(Some(&reported.record().await));
    assert_eq!(ear.taken(), (1, 0), "more than the record has");
    watcher.changed(None);
    sleep(MILLI).await;
    assert_eq!(ear.taken(), (0, 0), "nothing new");
    reported.store.clear();
    watcher.changed(None);
    sleep(MILLI).await;
    assert_eq!(ear.taken(), (1, 0), "deleted");
    watcher.changed(Some(b"nonsense"));
    assert_eq!(ear.taken(), (1, 0));
    watcher.live();
    assert_eq!(ear.taken(), (1, 0), "the connection was lost");
}

/// A store that cannot notify its clients is read again, and a read that fails is a gap.
#[tokio::test(start_paused = true)]
async fn a_store_without_a_watch_is_read_from_time_to_time() {
    let store = MemoryStore::new();
    let is_down = Arc::new(AtomicUsize::new(0));
    let down = is_down.clone();
    let wrapped = Wrapped::new(&store).on_watch(|_, _, _| None);
    let wrapped = wrapped.on_read(move |store, key| match down.load(Ordering::SeqCst) {
        0 => store.read(key),
        _ => Box::pin(async { Err(TransportError::definite(Cause::Unreachable, "down")) }),
    });
    let transport = StoreTransport::new(wrapped).poll_every(50 * MILLI);
    let ear = Arc::new(Ear::default());
    let subscription = transport.subscribe(&channel(), ear.clone());
    sleep(MILLI).await;
    assert_eq!(ear.taken(), (1, 0));
    ask(&transport, release(owner(7, 1))).await.unwrap();
    another_writes(&store, acquire(owner(2, 1), SECOND)).await;
    another_writes(&store, release(owner(2, 1))).await;
    sleep(60 * MILLI).await;
    assert_eq!(ear.taken(), (0, 1));
    is_down.store(1, Ordering::SeqCst);
    sleep(SECOND).await;
    is_down.store(0, Ordering::SeqCst);
    sleep(60 * MILLI).await;
    assert_eq!(ear.taken(), (1, 0));
    drop(subscription);
}

/// Waiters of the same process do not wait for the next read.
#[tokio::test(start_paused = true)]
async fn a_release_wakes_a_waiter_of_the_same_process_at_once() {
    let store = Wrapped::new(&MemoryStore::new()).on_watch(|_, _, _| None);
    let transport = StoreTransport::new(store).poll_every(100 * SECOND);
    let locks = Locks::on_node(transport.clone()).unwrap();
    let other = Locks::on_node(transport).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let waiting = tokio::spawn(async move { other.lock("a").acquire().await.unwrap() });
    sleep(SECOND).await;
    let began = Instant::now();
    guard.release().await.unwrap();
    let guard = timeout(SECOND, waiting).await.unwrap().unwrap();
    assert!(guard.is_held());
    assert!(began.elapsed() < 10 * MILLI);
}
