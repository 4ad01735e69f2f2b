//! The clock of the store, clocks that are set, and stores without a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::{Locks, Mode, RetryPolicy};
use quorlock_core::message::{
    Access, AcquireReply, Channel, Freshness, QueuePlace, ReleaseReply, Reply, Request, Ttl, Wake,
};
use quorlock_core::name::Name;
use quorlock_core::time::WallMillis;
use quorlock_core::transport::{Execution, Listener, Transport};
use quorlock_store::{
    Draft, Key, MemoryStore, ReadCall, Store, StoreTransport, Version, Watcher, WriteCall,
};
use tokio::time::{sleep, timeout};

use crate::SECOND;
use crate::wrapped::{Wrapped, acquire, another_writes, ask, owner, release};

/// A store whose clock is set by the test.
fn with_clock(millis: u64) -> (MemoryStore, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(millis));
    let read = clock.clone();
    let now = move || Some(WallMillis(read.load(Ordering::SeqCst)));
    (MemoryStore::with_clock(now), clock)
}

fn is_anew(reply: &Reply) -> bool {
    let anew = Freshness::Anew;
    matches!(reply, Reply::Acquire(AcquireReply::Granted { freshness, .. }) if *freshness == anew)
}

fn refused_for(reply: &Reply) -> Duration {
    match reply {
        Reply::Acquire(AcquireReply::Refused {
            ttl: Ttl::Millis(millis),
            ..
        }) => Duration::from_millis(*millis),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_ends_by_the_clock_of_the_store_alone() {
    let (store, clock) = with_clock(1_000_000);
    let client = || StoreTransport::new(store.clone());
    let (first, second) = (client(), client());
    ask(&first, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    // The client's clock does not matter.
    sleep(60 * SECOND).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert_eq!(refused_for(&reply), 10 * SECOND);
    clock.fetch_add(10_001, Ordering::SeqCst);
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert!(is_anew(&reply));
}

/// A clock that is set back keeps claims for longer. It brings none back that was seen to be over.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_does_no_harm() {
    let (store, clock) = with_clock(1_000_000);
    let client = || StoreTransport::new(store.clone());
    let (first, second) = (client(), client());
    ask(&first, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    sleep(10 * SECOND).await;
    clock.store(1_010_001, Ordering::SeqCst);
    // The owner learns that its claim is over, so it never releases it.
    let reply = ask(&first, release(owner(1, 1))).await.unwrap();
    assert_eq!(reply, Reply::Release(ReleaseReply::NotYours));
    clock.store(900_000, Ordering::SeqCst);
    let reply = ask(&second, acquire(owner(2, 1), 10 * SECOND))
        .await
        .unwrap();
    assert!(is_anew(&reply));
    clock.store(800_000, Ordering::SeqCst);
    // The first client still remembers what the clock showed before.
    let reply = ask(&first, acquire(owner(1, 2), 10 * SECOND))
        .await
        .unwrap();
    assert!(10 * SECOND < refused_for(&reply));
    let reply = ask(&second, release(owner(2, 1))).await.unwrap();
    assert_eq!(reply, Reply::Release(ReleaseReply::FREED));
}

/// The client remembers what the clock showed and writes without reading it. The claim that it writes ends too early then.
#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_forward_before_a_write_without_a_read_grants_nothing() {
    let (store, clock) = with_clock(1_000_000);
    let transport = StoreTransport::new(store.clone());
    ask(&transport, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    ask(&transport, release(owner(1, 1))).await.unwrap();
    clock.fetch_add(3_600_000, Ordering::SeqCst);
    let error = ask(&transport, acquire(owner(1, 2), 10 * SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.execution, Execution::Indeterminate);
    assert!(error.detail.contains("set forward"), "{error}");
    // What follows reads the clock.
    let reply = ask(&transport, acquire(owner(1, 3), 10 * SECOND))
        .await
        .unwrap();
    assert!(is_anew(&reply));
    let other = StoreTransport::new(store);
    let reply = ask(&other, acquire(owner(2, 1), 10 * SECOND))
        .await
        .unwrap();
    assert_eq!(refused_for(&reply), 10 * SECOND);
}

/// A claim that is written from memory is kept for its whole lease from when the request was sent, however old the memory
/// is and however fast the store's clock.
#[tokio::test(start_paused = true)]
async fn a_claim_written_from_memory_is_kept_for_its_whole_lease() {
    let (store, clock) = with_clock(1_000_000);
    let transport = StoreTransport::new(store.clone());
    ask(&transport, acquire(owner(1, 0), 10 * SECOND))
        .await
        .unwrap();
    ask(&transport, release(owner(1, 0))).await.unwrap();
    for (number, pause_millis) in [(1, 1_u64), (2, 500), (3, 30_000), (4, 59_000)] {
        // The clock of the store is fast by as much as is allowed.
        sleep(Duration::from_millis(pause_millis)).await;
        clock.fetch_add(pause_millis + pause_millis / 101, Ordering::SeqCst);
        let reply = ask(&transport, acquire(owner(1, number), 10 * SECOND))
            .await
            .unwrap();
        assert!(is_anew(&reply));
        let other = StoreTransport::new(store.clone());
        let reply = ask(&other, acquire(owner(2, 1), SECOND)).await.unwrap();
        let left = refused_for(&reply);
        assert!(
            10 * SECOND <= left && left <= 11 * SECOND,
            "{pause_millis}: {left:?}"
        );
        ask(&transport, release(owner(1, number))).await.unwrap();
    }
}

/// A client that remembers a claim does not end it by a time that only may have come.
#[tokio::test(start_paused = true)]
async fn a_claim_is_not_ended_by_a_time_that_is_only_reckoned() {
    let (store, clock) = with_clock(1_000_000);
    let transport = StoreTransport::new(store.clone());
    ask(&transport, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    // By the client's clock ten seconds have passed, by the store's a little less: the claim is still there.
    sleep(10 * SECOND + Duration::from_millis(1)).await;
    clock.fetch_add(9_950, Ordering::SeqCst);
    let reply = ask(&transport, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert_eq!(refused_for(&reply), Duration::from_millis(50));
}

fn clockless() -> MemoryStore {
    MemoryStore::with_clock(|| None)
}

/// A store without a clock: a claim ends when a client has observed it unchanged for a whole lease.
#[tokio::test(start_paused = true)]
async fn without_a_clock_a_claim_is_taken_over_after_a_whole_lease_of_unchanged_version() {
    let store = clockless();
    let client = || StoreTransport::new(store.clone());
    let (first, second) = (client(), client());
    ask(&first, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    // No client has observed these ten minutes.
    sleep(600 * SECOND).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert_eq!(refused_for(&reply), 10 * SECOND);
    sleep(9 * SECOND).await;
    // The first client renews: the observation begins again.
    let reply = ask(&first, acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    assert!(matches!(
        reply,
        Reply::Acquire(AcquireReply::Granted { .. })
    ));
    sleep(2 * SECOND).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert!(9 * SECOND < refused_for(&reply));
    // One percent more than the lease, because clocks differ.
    sleep(10 * SECOND).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert!(Duration::ZERO < refused_for(&reply));
    sleep(SECOND / 5).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert!(is_anew(&reply));
}

/// Returns the request in another mode.
fn in_mode(mut request: Request, access: Access) -> Request {
    if let Request::Acquire(ask) = &mut request {
        ask.access = access;
    }
    request
}

struct Deaf;

impl Listener for Deaf {
    fn live(&self) {}

    fn wake(&self, _: Wake) {}
}

/// Clients that wait hear of each version, and each write adds what its client has observed. That is never more than what
/// has passed.
#[tokio::test(start_paused = true)]
async fn without_a_clock_the_observations_of_several_clients_add_up() {
    let store = clockless();
    let client = || StoreTransport::new(store.clone());
    let began = tokio::time::Instant::now();
    let read = |number, lease| in_mode(acquire(number, lease), Access::Read { under: None });
    ask(&client(), read(owner(1, 1), 30 * SECOND))
        .await
        .unwrap();
    let clients = [client(), client(), client()];
    let channel = Channel::ReadWrite(Name::new("a").unwrap());
    let subscriptions = [0, 1, 2].map(|at: usize| clients[at].subscribe(&channel, Arc::new(Deaf)));
    for number in 0.. {
        // Readers come and go, each with its own client.
        for transport in &clients {
            sleep(SECOND).await;
            ask(transport, read(owner(2, number), SECOND / 2))
                .await
                .unwrap();
        }
        sleep(SECOND).await;
        let write = in_mode(acquire(owner(3, number), SECOND), Access::Write);
        if is_anew(&ask(&clients[0], write).await.unwrap()) {
            break;
        }
    }
    assert!(30 * SECOND <= began.elapsed());
    assert!(began.elapsed() < 40 * SECOND, "the first reader is dead");
    drop(subscriptions);
}

/// A client that has just been started has observed nothing. Its renewal leaves the record as it is, apart from the version.
#[tokio::test(start_paused = true)]
async fn without_a_clock_a_renewal_by_a_client_that_has_observed_nothing_begins_the_lease_again() {
    let store = clockless();
    let client = || StoreTransport::new(store.clone());
    let second = client();
    ask(&client(), acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    sleep(9 * SECOND).await;
    ask(&client(), acquire(owner(1, 1), 10 * SECOND))
        .await
        .unwrap();
    sleep(9 * SECOND).await;
    let reply = ask(&second, acquire(owner(2, 1), SECOND)).await.unwrap();
    assert!(9 * SECOND < refused_for(&reply));
}

#[tokio::test(start_paused = true)]
async fn without_a_clock_every_kind_of_lock_works_and_dead_holders_are_replaced() {
    let store = clockless();
    let client = || {
        let builder = Locks::builder().watchdog_lease(3 * SECOND);
        builder.on_node(StoreTransport::new(store.clone())).unwrap()
    };
    let (first, second) = (client(), client());
    for mode in [Mode::Plain, Mode::Fair, Mode::Write] {
        let lock = |locks: &Locks| match mode {
            Mode::Fair => locks.fair("fair"),
            Mode::Write => locks.write("write"),
            _ => locks.lock("plain"),
        };
        let guard = lock(&first).acquire().await.unwrap();
        let waiting = lock(&second);
        let waiting = tokio::spawn(async move { waiting.acquire().await.unwrap() });
        sleep(20 * SECOND).await;
        assert!(guard.is_held() && !waiting.is_finished(), "{mode}");
        let token = guard.fencing_token();
        guard.leak();
        let guard = timeout(10 * SECOND, waiting).await.unwrap().unwrap();
        assert!(token < guard.fencing_token(), "{mode}");
        guard.release().await.unwrap();
    }
}

/// Tells that a record has changed, and not what it is.
struct Terse(Arc<dyn Watcher>);

impl Watcher for Terse {
    fn live(&self) {
        self.0.live();
    }

    fn changed(&self, _: Option<&[u8]>) {
        self.0.changed(None);
    }
}

/// A store that answers after some time, and does not tell what a changed record is.
fn distant(store: &MemoryStore) -> Wrapped {
    const AWAY: Duration = Duration::from_millis(20);
    let read = |store: &MemoryStore, key: &Key| -> ReadCall {
        let read = store.read(key);
        Box::pin(async {
            sleep(AWAY).await;
            read.await
        })
    };
    let write =
        |store: &MemoryStore, key: &Key, version: Option<&Version>, draft: Draft| -> WriteCall {
            let (store, key, version) = (store.clone(), key.clone(), version.cloned());
            Box::pin(async move {
                sleep(AWAY).await;
                store.write_if(&key, version.as_ref(), draft).await
            })
        };
    let watch =
        |store: &MemoryStore, key: &Key, watcher| store.watch(key, Arc::new(Terse(watcher)));
    let wrapped = Wrapped::new(store);
    wrapped.on_read(read).on_write(write).on_watch(watch)
}

/// Each waiter keeps its place. Time passes in the record nevertheless.
async fn many_wait(distant: impl Fn(&MemoryStore) -> Wrapped) {
    let store = clockless();
    let fair = |number, place| in_mode(acquire(owner(number, 1), 3 * SECOND), Access::Fair(place));
    another_writes(&store, fair(1, QueuePlace::None)).await;
    another_writes(&store, fair(2, QueuePlace::Kept { millis: 3_000 })).await;
    let waiting = (0..8).map(|_| {
        let retry = RetryPolicy::default().poll_cap(SECOND / 2);
        let builder = Locks::builder().watchdog_lease(3 * SECOND).retry(retry);
        let locks = builder
            .on_node(StoreTransport::new(distant(&store)))
            .unwrap();
        tokio::spawn(async move {
            let guard = locks.fair("a").acquire().await.unwrap();
            guard.release().await.unwrap();
        })
    });
    let waiting: Vec<_> = waiting.collect();
    for waiter in waiting {
        timeout(20 * SECOND, waiter).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_clock_many_waiters_of_a_fair_lock_outlive_a_dead_holder_and_a_dead_waiter() {
    many_wait(distant).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_clock_and_a_watch_many_waiters_of_a_fair_lock_outlive_a_dead_holder() {
    many_wait(|store| distant(store).on_watch(|_, _, _| None)).await;
}

/// A token counter without a clock begins at the wall clock of a client, as it does on a server.
#[tokio::test(start_paused = true)]
async fn without_a_clock_tokens_grow_with_the_wall_clock_of_clients() {
    let store = clockless();
    let locks = Locks::on_node(StoreTransport::new(store.clone())).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let before = guard.fencing_token();
    guard.release().await.unwrap();
    store.clear();
    let other = Locks::on_node(StoreTransport::new(store)).unwrap();
    let guard = other.lock("a").acquire().await.unwrap();
    assert!(before <= guard.fencing_token());
}

#[tokio::test(start_paused = true)]
async fn records_of_free_names_are_swept_when_their_counters_expire() {
    let store = MemoryStore::new();
    let builder = || Locks::builder().token_retention(Some(3_600 * SECOND));
    let locks = builder()
        .on_node(StoreTransport::new(Wrapped::new(&store)))
        .unwrap();
    for number in 0..20 {
        let guard = locks.lock(format!("{number}")).acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    assert_eq!(store.len(), 20);
    let held = locks.lock("held").acquire().await.unwrap();
    // The renewals of a hold ask the store to sweep now and then.
    sleep(3_000 * SECOND).await;
    assert_eq!(store.len(), 21, "the counters are still kept");
    sleep(1_400 * SECOND).await;
    assert_eq!(store.len(), 1);
    assert!(held.is_held());
    another_writes(&store, acquire(owner(1, 1), SECOND)).await;
    assert_eq!(store.len(), 2);
}
