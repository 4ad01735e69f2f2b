//! Wake-ups.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::join_all;
use quorlock_store::{Draft, Key, Store, Watcher, open};
use quorlock_testbed::etcd::Etcd;
use quorlock_testbed::proxy::{End, Forwarding};
use tokio::time::{sleep, timeout};

use crate::databases::{SECOND, bare, patient, store};
use crate::faults::through_proxy;
use crate::operator;

#[derive(Default)]
struct Ear {
    lives: AtomicUsize,
    last: Mutex<Vec<u8>>,
}

impl Watcher for Ear {
    fn live(&self) {
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    fn changed(&self, record: Option<&[u8]>) {
        *self.last.lock().unwrap() = record.unwrap_or_default().to_vec();
    }
}

impl Ear {
    async fn is_live(&self, times: usize) {
        let live = async {
            while self.lives.load(Ordering::SeqCst) < times {
                sleep(SECOND / 100).await;
            }
        };
        timeout(60 * SECOND, live).await.unwrap();
    }

    async fn hears(&self, record: &[u8]) {
        let heard = async {
            while *self.last.lock().unwrap() != record {
                sleep(SECOND / 100).await;
            }
        };
        timeout(60 * SECOND, heard).await.unwrap();
    }
}

async fn write(store: &dyn Store, key: &Key, record: &[u8]) {
    let found = store.read(key).await.unwrap().stored;
    let draft = Draft {
        record: record.to_vec(),
        number: 7,
        has_news: true,
        useful_until: None,
    };
    let version = found.as_ref().map(|stored| &stored.version);
    store.write_if(key, version, draft).await.unwrap();
}

/// The median of nine is shorter than what a client that reads again from time to time needs on average.
pub(crate) async fn a_waiter_is_woken_at_once(server: Etcd) {
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
    assert!(times[4] < SECOND / 8, "{times:?}");
}

pub(crate) async fn one_stream_reports_all_keys(server: Etcd) {
    let store = store(&server).await;
    let key = |number: usize| Key::new(format!("{number}"));
    let ears: Vec<Arc<Ear>> = (0..300).map(|_| Arc::default()).collect();
    let watched = ears.iter().enumerate();
    let watched = watched.map(|(number, ear)| store.watch(&key(number), ear.clone()).unwrap());
    let mut watched: Vec<_> = watched.collect();
    for ear in &ears {
        ear.is_live(1).await;
    }
    let count = |name: &str| server.metric(name).unwrap();
    assert_eq!(count("etcd_debugging_mvcc_watch_stream_total"), 1.0);
    assert_eq!(count("etcd_debugging_mvcc_watcher_total"), 300.0);
    // One of a key that is watched is told at once.
    let second = Arc::new(Ear::default());
    let also = store.watch(&key(7), second.clone());
    assert_eq!(second.lives.load(Ordering::SeqCst), 1);
    write(&*store, &key(7), b"x").await;
    ears[7].hears(b"x").await;
    second.hears(b"x").await;
    assert_eq!(*ears[8].last.lock().unwrap(), b"");
    // Half of them leave, and one comes back.
    watched.truncate(150);
    drop(also);
    let again = store.watch(&key(200), ears[200].clone());
    ears[200].is_live(2).await;
    write(&*store, &key(200), b"y").await;
    ears[200].hears(b"y").await;
    drop((watched, again));
    let ended = async {
        while 0.0 < count("etcd_debugging_mvcc_watch_stream_total") {
            sleep(SECOND / 20).await;
        }
    };
    timeout(60 * SECOND, ended).await.unwrap();
    let ear = Arc::new(Ear::default());
    let _watched = store.watch(&key(1), ear.clone());
    ear.is_live(1).await;
}

pub(crate) async fn a_restart_is_a_gap(mut server: Etcd) {
    let (store, writer) = (store(&server).await, bare(&server));
    let (key, ear) = (Key::new("a"), Arc::new(Ear::default()));
    let _watched = store.watch(&key, ear.clone());
    ear.is_live(1).await;
    server.kill();
    server.launch();
    ear.is_live(2).await;
    write(&*writer, &key, b"x").await;
    ear.hears(b"x").await;
    // One that stands still is found out by itself.
    server.stop();
    let lives = ear.lives.load(Ordering::SeqCst);
    sleep(12 * SECOND).await;
    server.go_on();
    ear.is_live(lives + 1).await;
    write(&*writer, &key, b"y").await;
    ear.hears(b"y").await;
}

/// A server ends connections that are tried too often.
pub(crate) async fn a_stream_without_news_is_not_ended(server: Etcd) {
    let (store, ear) = (store(&server).await, Arc::new(Ear::default()));
    let _watched = store.watch(&Key::new("a"), ear.clone());
    ear.is_live(1).await;
    sleep(40 * SECOND).await;
    assert_eq!(ear.lives.load(Ordering::SeqCst), 1);
    write(&*store, &Key::new("a"), b"x").await;
    ear.hears(b"x").await;
    assert_eq!(ear.lives.load(Ordering::SeqCst), 1);
}

pub(crate) async fn a_compaction_loses_no_report(server: Etcd) {
    let (store, writer) = (store(&server).await, bare(&server));
    let (key, ear) = (Key::new("a"), Arc::new(Ear::default()));
    let _watched = store.watch(&key, ear.clone());
    ear.is_live(1).await;
    let mut operator = operator(&server).await;
    for round in 0..20 {
        let record = format!("{round}");
        write(&*writer, &key, record.as_bytes()).await;
        let now = operator.get("a", None).await.unwrap();
        let now = now.header().unwrap().revision();
        operator.compact(now, None).await.unwrap();
        ear.hears(record.as_bytes()).await;
    }
}

/// A server that cannot report changes as fast as they come lets them wait, and ends the watch if they were compacted meanwhile.
pub(crate) async fn a_watch_that_the_server_ends_begins_again(server: Etcd) {
    let (proxy, address) = through_proxy(&server).await;
    let store = open(&address).unwrap();
    let (key, ear) = (Key::new("a"), Arc::new(Ear::default()));
    let _watched = store.watch(&key, ear.clone());
    ear.is_live(1).await;
    let connections = proxy.opened();
    proxy.set(End::Client, Forwarding::Held);
    let operator = operator(&server).await;
    let put = async |bytes: usize| {
        let mut kv = operator.kv_client();
        let done = kv.put("quorlock/a", vec![b'x'; bytes], None).await.unwrap();
        done.header().unwrap().revision()
    };
    // More than the server, the network and the client keep on the way.
    let mut last = 0;
    for _ in 0..40 {
        let done = join_all((0..64).map(|_| put(10_000))).await;
        last = done.into_iter().max().unwrap();
    }
    operator.kv_client().compact(last, None).await.unwrap();
    proxy.set(End::Client, Forwarding::Open);
    ear.is_live(2).await;
    // It is the same stream, on the same connection.
    assert_eq!(proxy.opened(), connections);
    write(&*store, &key, b"x").await;
    ear.hears(b"x").await;
}
