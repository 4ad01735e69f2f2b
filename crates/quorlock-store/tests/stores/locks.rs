//! Every kind of lock on a store.

use std::sync::{Arc, Mutex};

use quorlock::Locks;
use quorlock_store::{MemoryStore, StoreTransport};
use tokio::time::{sleep, timeout};

use crate::SECOND;

#[tokio::test(start_paused = true)]
async fn one_client_holds_a_name_and_the_next_is_woken() {
    let store = MemoryStore::new();
    let client = || Locks::on_node(StoreTransport::new(store.clone())).unwrap();
    let (first, second) = (client(), client());
    let guard = first.lock("a").acquire().await.unwrap();
    assert!(second.lock("a").try_acquire().await.unwrap().is_none());
    let token = guard.fencing_token();
    let waiting = tokio::spawn(async move { second.lock("a").acquire().await.unwrap() });
    sleep(SECOND).await;
    guard.release().await.unwrap();
    // A waiter that is not woken would ask again after five seconds.
    let guard = timeout(SECOND, waiting).await.unwrap().unwrap();
    assert!(token < guard.fencing_token());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fair_and_read_write_locks_and_several_names_work() {
    let locks = Locks::on_node(StoreTransport::new(MemoryStore::new())).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let first = locks.fair("queue").acquire().await.unwrap();
    let mut waiters = Vec::new();
    for number in 0..3 {
        let (locks, order) = (locks.clone(), order.clone());
        waiters.push(tokio::spawn(async move {
            let guard = locks.fair("queue").acquire().await.unwrap();
            order.lock().unwrap().push(number);
            guard.release().await.unwrap();
        }));
        sleep(SECOND).await;
    }
    first.release().await.unwrap();
    for waiter in waiters {
        timeout(SECOND, waiter).await.unwrap().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [0, 1, 2]);

    let reader = locks.read("page").acquire().await.unwrap();
    let other = locks.read("page").acquire().await.unwrap();
    assert!(locks.write("page").try_acquire().await.unwrap().is_none());
    reader.release().await.unwrap();
    other.release().await.unwrap();
    let writer = locks.write("page").try_acquire().await.unwrap();
    writer.unwrap().release().await.unwrap();

    let both = locks.all(["a", "b"]).acquire().await.unwrap();
    assert!(locks.lock("b").try_acquire().await.unwrap().is_none());
    both.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_renewed_and_a_dead_holder_is_replaced() {
    let store = MemoryStore::new();
    let client = || {
        let builder = Locks::builder().watchdog_lease(3 * SECOND);
        builder.on_node(StoreTransport::new(store.clone())).unwrap()
    };
    let (first, second) = (client(), client());
    let guard = first.lock("a").acquire().await.unwrap();
    sleep(20 * SECOND).await;
    assert!(guard.is_held());
    assert!(second.lock("a").try_acquire().await.unwrap().is_none());
    guard.leak();
    sleep(4 * SECOND).await;
    assert!(second.lock("a").try_acquire().await.unwrap().is_some());
}

/// A renewal of several claims is one call, and each claim is in a record of its own.
#[tokio::test(start_paused = true)]
async fn many_holds_of_one_client_are_renewed_together() {
    let store = MemoryStore::new();
    let builder = Locks::builder().watchdog_lease(3 * SECOND);
    let locks = builder.on_node(StoreTransport::new(store)).unwrap();
    let mut guards = Vec::new();
    for number in 0..150 {
        guards.push(locks.lock(format!("{number}")).acquire().await.unwrap());
    }
    sleep(20 * SECOND).await;
    assert!(guards.iter().all(quorlock::Guard::is_held));
}
