//! Connections that end, and data that change behind the clients.

use futures_util::future::join_all;
use mongodb::bson::doc;
use quorlock::Locks;
use quorlock_store::{Key, Store, Written, open};
use quorlock_testbed::mongodb::Mongodb;

use crate::databases::{bare, check, draft, patient, store};
use crate::faults::through_proxy;
use crate::records;

/// No call fails, whether it reads or writes. (A server that ends has lost its data.)
pub(crate) async fn a_connection_that_has_ended_is_replaced(server: Mongodb) {
    let (proxy, address) = through_proxy(&server).await;
    let store = open(&address).unwrap();
    let locks = patient(store.clone());
    let guard = locks.lock("a").acquire().await.unwrap();
    proxy.cut();
    guard.release().await.unwrap();
    proxy.cut();
    check(&*store).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
}

/// A majority has to notice that claims are missing.
pub(crate) async fn a_server_that_has_forgotten_is_another_process(mut server: Mongodb) {
    let process = async || {
        let snapshot = bare(&server).read(&Key::new("a")).await.unwrap();
        snapshot.stamp.process
    };
    let before = process().await;
    assert_eq!(before, process().await);
    let locks = Locks::connect(server.address()).await.unwrap();
    drop(locks.lock("a").acquire().await.unwrap());
    server.kill();
    server.launch();
    let snapshot = bare(&server).read(&Key::new("a")).await.unwrap();
    assert_eq!(snapshot.stored, None);
    assert_ne!(snapshot.stamp.process, before);
}

pub(crate) async fn a_record_that_was_deleted_makes_no_client_overwrite_a_claim(server: Mongodb) {
    let store = store(&server).await;
    let key = Key::new("a");
    store.write_if(&key, None, draft(1, b"free")).await.unwrap();
    let remembered = store.read(&key).await.unwrap().stored.unwrap().version;
    let operator = records(&server).await;
    operator.delete_one(doc! { "_id": "a" }).await.unwrap();
    let claimed = store.write_if(&key, None, draft(2, b"claim")).await;
    claimed.unwrap();
    let late = store.write_if(&key, Some(&remembered), draft(3, b"mine"));
    assert_eq!(late.await, Ok(Written::Conflict));
}

/// Eight clients change a record from the same version, and eight make a record, forty times each.
pub(crate) async fn of_clients_that_write_at_once_one_succeeds(server: Mongodb) {
    let stores: Vec<_> = (0..8).map(|_| bare(&server)).collect();
    let key = Key::new("a");
    for round in 0..40 {
        let before = stores[0].read(&key).await.unwrap().stored;
        let before = before.map(|stored| stored.version);
        let made = Key::new(format!("made/{round}"));
        for (key, version) in [(&key, before.as_ref()), (&made, None)] {
            let writes = stores.iter().zip(1_u64..);
            let writes = writes.map(|(store, number)| {
                store.write_if(key, version, draft(round * 10 + number, b"x"))
            });
            let written = join_all(writes).await;
            let stored = |it: &&Result<Written, _>| matches!(it, Ok(Written::Stored { .. }));
            assert_eq!(written.iter().filter(stored).count(), 1, "{written:?}");
        }
    }
}
