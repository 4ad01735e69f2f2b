//! Wake-ups.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use quorlock_store::{Key, Store, Watcher};
use quorlock_testbed::zookeeper::Zookeeper;
use tokio::time::{sleep, timeout};

use crate::databases::{SECOND, bare, draft, patient, store};
use crate::operator;

#[derive(Default)]
struct Ear {
    lives: AtomicUsize,
    heard: Mutex<Vec<Option<Vec<u8>>>>,
}

impl Watcher for Ear {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    fn changed(&self, record: Option<&[u8]>) {
        self.heard.lock().unwrap().push(record.map(<[u8]>::to_vec));
    }
}

impl Ear {
    async fn is_live(&self) {
        let live = async {
            while self.lives.load(Ordering::SeqCst) == 0 {
                sleep(SECOND / 100).await;
            }
        };
        timeout(60 * SECOND, live).await.unwrap();
    }

    async fn hears(&self, record: Option<&[u8]>) {
        let heard = async {
            while self.heard.lock().unwrap().last().map(Option::as_deref) != Some(record) {
                sleep(SECOND / 100).await;
            }
        };
        timeout(60 * SECOND, heard).await.unwrap();
    }
}

async fn write(store: &dyn Store, key: &Key, number: u64, record: &[u8]) {
    let found = store.read(key).await.unwrap().stored;
    let version = found.as_ref().map(|stored| &stored.version);
    store
        .write_if(key, version, draft(number, record))
        .await
        .unwrap();
}

/// The median of nine is shorter than what a client that reads again from time to time needs on average.
pub(crate) async fn a_waiter_is_woken_at_once(server: Zookeeper) {
    let (holding, waiting) = (patient(bare(&server)), patient(bare(&server)));
    let mut times = Vec::new();
    for _ in 0..9 {
        let guard = holding.lock("a").acquire().await.unwrap();
        let waiter = tokio::spawn({
            let waiting = waiting.clone();
            async move { waiting.lock("a").acquire().await.unwrap() }
        });
        sleep(SECOND / 2).await;
        let began = Instant::now();
        guard.release().await.unwrap();
        let guard = waiter.await.unwrap();
        times.push(began.elapsed());
        guard.release().await.unwrap();
    }
    times.sort_unstable();
    assert!(times[4] < SECOND, "{times:?}");
}

/// The server tells of it when the session goes on, or the watch begins anew.
pub(crate) async fn a_change_during_a_restart_is_reported(mut server: Zookeeper) {
    let (store, key) = (store(&server).await, Key::new("a"));
    write(&*store, &key, 1, b"one").await;
    let ear = Arc::new(Ear::default());
    let watched = store.watch(&key, ear.clone());
    ear.is_live().await;
    server.kill();
    server.launch();
    write(&*bare(&server), &key, 2, b"two").await;
    write(&*bare(&server), &key, 3, b"three").await;
    let told = async {
        while ear.lives.load(Ordering::SeqCst) < 2 && ear.heard.lock().unwrap().is_empty() {
            sleep(SECOND / 100).await;
        }
    };
    timeout(60 * SECOND, told).await.unwrap();
    write(&*bare(&server), &key, 4, b"four").await;
    ear.hears(Some(b"four")).await;
    drop(watched);
    let heard = ear.heard.lock().unwrap().len();
    write(&*store, &key, 5, b"five").await;
    sleep(SECOND / 2).await;
    assert_eq!(ear.heard.lock().unwrap().len(), heard);
}

pub(crate) async fn a_deletion_is_reported(server: Zookeeper) {
    let (store, key) = (store(&server).await, Key::new("a"));
    let ear = Arc::new(Ear::default());
    let _watched = store.watch(&key, ear.clone());
    ear.is_live().await;
    write(&*store, &key, 1, b"one").await;
    ear.hears(Some(b"one")).await;
    let operator = operator(&server).await;
    operator
        .delete("/quorlock/a/0000000000000001", None)
        .await
        .unwrap();
    operator.delete("/quorlock/a", None).await.unwrap();
    ear.hears(None).await;
    write(&*store, &key, 2, b"two").await;
    ear.hears(Some(b"two")).await;
}
