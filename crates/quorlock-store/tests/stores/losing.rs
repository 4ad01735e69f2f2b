//! Stores that forget, and say so.

use quorlock::{AcquireError, Locks};
use quorlock_core::marker::Process;
use quorlock_core::transport::Execution;
use quorlock_store::{MemoryStore, Store, StoreTransport};
use tokio::time::sleep;

use crate::SECOND;
use crate::wrapped::{Wrapped, acquire, ask, owner};

/// Three stores whose processes are 0, 1 and 2, and a client of their majority.
fn majority() -> (Vec<MemoryStore>, Locks) {
    let stores: Vec<_> = (0..3).map(|_| MemoryStore::new()).collect();
    for (store, number) in stores.iter().zip(0..) {
        store.set_process(Process(number));
    }
    let transports = stores.iter().enumerate().map(|(number, store)| {
        StoreTransport::new(Wrapped::new(store).at(&format!("memory:{number}")))
    });
    let builder = Locks::builder()
        .longest_lease(10 * SECOND)
        .watchdog_lease(6 * SECOND);
    let locks = builder.trust_fresh_nodes().on_nodes(transports).unwrap();
    (stores, locks)
}

/// Other servers take over: a majority does not count them for one longest lease.
#[tokio::test(start_paused = true)]
async fn a_majority_of_stores_watches_a_store_that_another_server_took_over() {
    let (stores, locks) = majority();
    let guard = locks.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    for store in &stores[..2] {
        store.clear();
        store.set_process(Process(77));
    }
    let refused = locks.lock("a").try_acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::NoQuorum { .. })),
        "{refused:?}"
    );
    sleep(11 * SECOND).await;
    assert!(locks.lock("a").acquire().await.is_ok());
}

/// An operator deletes all records: the stores are what they were, and their markers are gone.
#[tokio::test(start_paused = true)]
async fn a_majority_of_stores_notices_that_all_records_were_deleted() {
    let (stores, locks) = majority();
    let guard = locks.lock("a").acquire().await.unwrap();
    for store in &stores[..2] {
        store.clear();
    }
    let refused = locks.lock("b").try_acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::NoQuorum { .. })),
        "{refused:?}"
    );
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn two_stores_that_are_one_server_are_refused_in_one_majority() {
    let store = MemoryStore::new();
    let transports = (0..3)
        .map(|number| StoreTransport::new(Wrapped::new(&store).at(&format!("memory:{number}"))));
    let builder = Locks::builder().trust_fresh_nodes();
    let locks = builder.on_nodes(transports).unwrap();
    let refused = locks.lock("a").try_acquire().await;
    assert!(refused.is_err(), "{refused:?}");
}

/// A write that another server executes: what was read may be missing there.
#[tokio::test(start_paused = true)]
async fn a_take_over_between_the_read_and_the_write_grants_nothing() {
    let store = MemoryStore::new();
    let wrapped = Wrapped::new(&store).on_write(|store, key, version, draft| {
        store.set_process(Process(9));
        store.write_if(key, version, draft)
    });
    let transport = StoreTransport::new(wrapped);
    let error = ask(&transport, acquire(owner(1, 1), SECOND))
        .await
        .unwrap_err();
    assert_eq!(error.execution, Execution::Indeterminate);
    assert!(error.detail.contains("took over"), "{error}");
}
