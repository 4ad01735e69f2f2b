//! What the tests of several stores have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorlock::Locks;
use quorlock_store::{Store, StoreTransport};

/// Each store is a client of its own. All lock one name ten times, and no two hold it at once.
pub(crate) async fn exclude_each_other<S: Store>(stores: impl IntoIterator<Item = S>) {
    lock_in_turn(stores, false).await;
}

/// The same while servers fail: a client tries again until it holds the name, and a claim that could not be released ends with its lease.
#[allow(dead_code, reason = "only clusters fail in part")]
pub(crate) async fn exclude_each_other_despite_faults<S: Store>(
    stores: impl IntoIterator<Item = S>,
) {
    lock_in_turn(stores, true).await;
}

async fn lock_in_turn<S: Store>(stores: impl IntoIterator<Item = S>, has_faults: bool) {
    let inside = Arc::new(AtomicUsize::new(0));
    let clients = stores.into_iter().map(|store| {
        // The machine may be busy.
        let second = Duration::from_secs(1);
        let transport = StoreTransport::new(store).call_timeout(20 * second);
        let builder = Locks::builder().member_timeout(9 * second);
        let locks = builder.on_node(transport).unwrap();
        let inside = inside.clone();
        tokio::spawn(async move {
            for _ in 0..10 {
                let guard = loop {
                    match locks.fair("a").acquire().await {
                        Ok(guard) => break guard,
                        Err(error) => assert!(has_faults, "{error}"),
                    }
                };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::time::sleep(Duration::from_millis(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                let released = guard.release().await;
                assert!(has_faults || released.is_ok(), "{released:?}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}
