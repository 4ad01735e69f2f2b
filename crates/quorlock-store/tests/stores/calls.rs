//! How many calls of the store a request costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock::transport::{AcquireReply, ReleaseReply, Reply, Transport};
use quorlock::{Locks, NodeTrust};
use quorlock_store::{MemoryStore, Store, StoreTransport};

use crate::wrapped::{Wrapped, acquire, another_writes, ask, owner, release};
use crate::{MILLI, SECOND};

#[derive(Clone, Default)]
struct Counted {
    reads: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
}

impl Counted {
    fn around(&self, store: &MemoryStore) -> Wrapped {
        let (reads, writes) = (self.reads.clone(), self.writes.clone());
        Wrapped::new(store)
            .on_read(move |store, key| {
                reads.fetch_add(1, Ordering::SeqCst);
                let call = store.read(key);
                Box::pin(async move {
                    tokio::time::sleep(MILLI).await;
                    call.await
                })
            })
            .on_write(move |store, key, version, draft| {
                writes.fetch_add(1, Ordering::SeqCst);
                let (store, key, version) = (store.clone(), key.clone(), version.cloned());
                Box::pin(async move {
                    tokio::time::sleep(MILLI).await;
                    store.write_if(&key, version.as_ref(), draft).await
                })
            })
    }

    /// Returns the reads and writes since the last call.
    fn taken(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.reads), take(&self.writes))
    }
}

#[tokio::test(start_paused = true)]
async fn a_free_name_that_is_remembered_costs_one_call_and_another_costs_two() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let transport = StoreTransport::new(counted.around(&store));
    let locks = Locks::on_node(transport).unwrap();
    let lock = locks.lock("orders/42");
    let guard = lock.acquire().await.unwrap();
    assert_eq!(counted.taken(), (1, 1), "a name that was never seen");
    guard.release().await.unwrap();
    assert_eq!(counted.taken(), (0, 1), "a release");
    for pause in [0, 1, 30] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let guard = lock.acquire().await.unwrap();
        assert_eq!(counted.taken(), (0, 1), "a name that is remembered");
        guard.extend(60 * SECOND).await.unwrap();
        assert_eq!(counted.taken(), (0, 1), "an extension");
        guard.release().await.unwrap();
        assert_eq!(counted.taken(), (0, 1));
    }
    another_writes(&store, acquire(owner(9, 1), 10 * SECOND)).await;
    // Another client has used another name.
    assert!(lock.try_acquire().await.unwrap().is_some());
    assert_eq!(counted.taken(), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_old_memory_costs_a_conflict_and_two_calls() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let transport = StoreTransport::new(counted.around(&store));
    let (ours, others) = (owner(1, 1), owner(2, 1));
    ask(&transport, acquire(ours, SECOND)).await.unwrap();
    ask(&transport, release(ours)).await.unwrap();
    counted.taken();
    another_writes(&store, acquire(others, 100 * SECOND)).await;
    let refused = ask(&transport, acquire(ours, SECOND)).await.unwrap();
    assert!(matches!(
        refused,
        Reply::Acquire(AcquireReply::Refused { .. })
    ));
    assert_eq!(counted.taken(), (1, 1));
    // It is known that the name is held, so nothing is written any more.
    ask(&transport, acquire(ours, SECOND)).await.unwrap();
    assert_eq!(counted.taken(), (1, 0));
    // A minute later the store's clock is read again.
    another_writes(&store, release(others)).await;
    ask(&transport, acquire(ours, SECOND)).await.unwrap();
    ask(&transport, release(ours)).await.unwrap();
    tokio::time::sleep(61 * SECOND).await;
    counted.taken();
    ask(&transport, acquire(ours, SECOND)).await.unwrap();
    assert_eq!(counted.taken(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_many_callers_about_one_name_are_written_at_once() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let transport = StoreTransport::new(counted.around(&store));
    let asks = (0..50).map(|number| ask(&transport, acquire(owner(1, number), SECOND)));
    let replies = join_all(asks).await;
    let granted = |reply: &Reply| matches!(reply, Reply::Acquire(AcquireReply::Granted { .. }));
    let granted: Vec<_> = replies
        .into_iter()
        .map(|reply| granted(&reply.unwrap()))
        .collect();
    assert!(granted[0]);
    assert_eq!(granted.iter().filter(|is| **is).count(), 1);
    assert_eq!(counted.taken(), (1, 1));
    let releases = (0..50).map(|number| ask(&transport, release(owner(1, number))));
    let replies = join_all(releases).await;
    let freed = |reply: &Reply| *reply == Reply::Release(ReleaseReply::FREED);
    assert_eq!(
        replies
            .iter()
            .filter(|reply| freed(reply.as_ref().unwrap()))
            .count(),
        1
    );
    assert_eq!(counted.taken(), (0, 1));
}

/// With a majority, the marker is read after each grant.
#[tokio::test(start_paused = true)]
async fn a_watched_store_costs_one_read_more() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let transport = StoreTransport::new(counted.around(&store));
    let builder = Locks::builder().node_trust(NodeTrust::Watched);
    let locks = builder.trust_fresh_nodes().on_node(transport).unwrap();
    let lock = locks.lock("a");
    let guard = lock.acquire().await.unwrap();
    guard.release().await.unwrap();
    tokio::time::sleep(SECOND).await;
    counted.taken();
    let guard = lock.acquire().await.unwrap();
    assert_eq!(counted.taken(), (1, 1));
    guard.release().await.unwrap();
}

/// Fifty tasks of one process pass one name on.
#[tokio::test(start_paused = true)]
async fn fifty_waiters_of_one_process_cost_three_calls_a_hold_at_most() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let transport = StoreTransport::new(counted.around(&store));
    let locks = Locks::on_node(transport).unwrap();
    let tasks = (0..50).map(|_| {
        let lock = locks.lock("a");
        tokio::spawn(async move {
            for _ in 0..4 {
                let guard = lock.acquire().await.unwrap();
                tokio::time::sleep(MILLI).await;
                guard.release().await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let (reads, writes) = counted.taken();
    assert!(reads + writes <= 3 * 200, "{reads} reads, {writes} writes");
}

/// Fifty clients, each of which conflicts with all others.
#[tokio::test(start_paused = true)]
async fn clients_that_conflict_pause_and_all_of_them_are_answered() {
    let (store, counted) = (MemoryStore::new(), Counted::default());
    let clients: Vec<_> = (0..50)
        .map(|_| StoreTransport::new(counted.around(&store)))
        .collect();
    let asks = clients.iter().zip(0..).map(|(transport, number)| {
        // Each enters its own place in the queue, which is a change of the record.
        let mut request = acquire(owner(number, 1), SECOND);
        if let quorlock::transport::Request::Acquire(ask) = &mut request {
            let place = quorlock_core::message::QueuePlace::Kept { millis: 60_000 };
            ask.access = quorlock_core::message::Access::Fair(place);
        }
        transport.call(request)
    });
    for reply in join_all(asks).await {
        reply.unwrap();
    }
    let (reads, writes) = counted.taken();
    assert!(
        50 < writes && writes < 50 * 20,
        "{reads} reads, {writes} writes"
    );
}
