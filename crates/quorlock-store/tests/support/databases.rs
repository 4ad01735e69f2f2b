//! What every store in a database server has to do. The test program of each says what its server is.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use quorlock::errors::NodeProblem;
use quorlock::{ConnectError, Locks};
use quorlock_store::{
    Cause, Draft, Key, MemoryStore, SqliteStore, Store, StoreTransport, TransportError, WallMillis,
    conformance, open,
};

use crate::support;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A real server.
pub(crate) trait Database: Sized + Send + 'static {
    fn start() -> Self;
    fn address(&self) -> String;
    fn launch(&mut self);
    fn kill(&mut self);
    fn stop(&self);
    fn go_on(&self);
}

/// A real server that may have replicas.
pub(crate) trait Replicated: Database {
    fn replica(&self) -> Self;
    fn promote(&self);
}

/// Makes a server of the test bed a [`Database`].
macro_rules! database {
    ($server:ty) => {
        impl crate::databases::Database for $server {
            fn start() -> Self {
                <$server>::start()
            }
            fn address(&self) -> String {
                <$server>::address(self)
            }
            fn launch(&mut self) {
                <$server>::launch(self);
            }
            fn kill(&mut self) {
                <$server>::kill(self);
            }
            fn stop(&self) {
                <$server>::stop(self);
            }
            fn go_on(&self) {
                <$server>::go_on(self);
            }
        }
    };
}
pub(crate) use database;

/// Makes a server of the test bed one that may have replicas.
#[allow(unused_macros, reason = "a cluster of etcd has none")]
macro_rules! replicated {
    ($server:ty) => {
        impl crate::databases::Replicated for $server {
            fn replica(&self) -> Self {
                <$server>::replica(self)
            }
            fn promote(&self) {
                <$server>::promote(self);
            }
        }
    };
}
#[allow(unused_imports, reason = "a cluster of etcd has none")]
pub(crate) use replicated;

/// Each test has a server of its own.
macro_rules! trials {
    ($server:ty: $($($path:ident)::+),* $(,)?) => {
        vec![$(crate::databases::trial::<$server, _>(stringify!($($path)::+), $($path)::+)),*]
    };
}
pub(crate) use trials;

pub(crate) fn trial<D: Database, F: Future<Output = ()> + 'static>(
    name: &str,
    test: fn(D) -> F,
) -> Trial {
    let name = name.replace(' ', "").replace("databases::", "");
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(test(D::start()));
        Ok(())
    })
}

/// Returns the store of a server, without its table.
pub(crate) fn bare<D: Database>(server: &D) -> Arc<dyn Store> {
    open(&server.address()).unwrap()
}

pub(crate) async fn store<D: Database>(server: &D) -> Arc<dyn Store> {
    let store = bare(server);
    store.set_up().await.unwrap();
    check(&*store).await.unwrap();
    store
}

/// Connects, and checks that the table is there.
pub(crate) async fn check(store: &dyn Store) -> Result<(), TransportError> {
    store.read(&Key::new(Key::MARKER)).await.map(|_| ())
}

/// Returns a client that waits for long: the machine may be busy.
pub(crate) fn patient(store: Arc<dyn Store>) -> Locks {
    let transport = StoreTransport::new(store).call_timeout(20 * SECOND);
    let builder = Locks::builder().member_timeout(9 * SECOND);
    builder.on_node(transport).unwrap()
}

/// Returns why no client was made of an address.
pub(crate) async fn refused(address: &str) -> ConnectError {
    Locks::connect(address).await.unwrap_err()
}

/// Returns the problem of the only node.
pub(crate) fn problem(error: ConnectError) -> (Cause, String) {
    match error {
        ConnectError::Nodes { mut problems, .. } => match problems.remove(0) {
            NodeProblem::Store { error, .. } => (error.cause, error.to_string()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Returns what a write stores that has this number.
#[allow(dead_code, reason = "not every test program writes by itself")]
pub(crate) fn draft(number: u64, record: &[u8]) -> Draft {
    Draft {
        record: record.to_vec(),
        number,
        has_news: true,
        useful_until: None,
    }
}

pub(crate) async fn a_table_keeps_the_rules_of_a_store<D: Database>(server: D) {
    let store = store(&server).await;
    let checked = conformance::check(Arc::new(store.clone()), "test/").await;
    assert_eq!(checked, Ok(()));
    assert!(!format!("{store:?}").contains("right"));
}

pub(crate) async fn clients_of_one_table_exclude_each_other_and_are_woken<D: Database>(server: D) {
    store(&server).await;
    let began = Instant::now();
    support::exclude_each_other((0..6).map(|_| bare(&server))).await;
    // Without wake-ups each of the sixty holds would begin after five seconds: after 300 s in all.
    assert!(began.elapsed() < 200 * SECOND, "{:?}", began.elapsed());
}

pub(crate) async fn a_server_that_restarts_keeps_its_claims<D: Database>(mut server: D) {
    let locks = patient(store(&server).await);
    let guard = locks.lock("a").acquire().await.unwrap();
    let waiting = locks.lock("b").acquire().await.unwrap();
    // It is ended without a checkpoint, and acknowledges at once if nothing else is asked for.
    server.kill();
    server.launch();
    let other = patient(bare(&server));
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(other.lock("a").try_acquire().await.unwrap().is_some());
    drop(waiting);
}

pub(crate) async fn a_server_that_stands_still_ends_no_claim_early<D: Database>(server: D) {
    let builder = Locks::builder().watchdog_lease(3 * SECOND);
    let locks = builder.on_node(StoreTransport::new(store(&server).await));
    let guard = locks.unwrap().lock("a").acquire().await.unwrap();
    server.stop();
    guard.lost().await;
    server.go_on();
    let other = Locks::on_node(StoreTransport::new(bare(&server))).unwrap();
    let taken = other.lock("a").acquire().await.unwrap();
    assert!(guard.fencing_token() < taken.fencing_token());
}

pub(crate) async fn a_replica_takes_no_writes_and_is_another_process_once_promoted<
    D: Replicated,
>(
    server: D,
) {
    let first = store(&server).await;
    let process = async |store: &dyn Store| {
        let snapshot = store.read(&Key::new("a")).await.unwrap();
        snapshot.stamp.process
    };
    let before = process(&*first).await;
    let replica = server.replica();
    let second = bare(&replica);
    let error = loop {
        let error = check(&*second).await.unwrap_err();
        // The replica may not have the table yet.
        match error.cause {
            Cause::Unsupported | Cause::NoDatabase => tokio::time::sleep(SECOND / 20).await,
            _ => break error,
        }
    };
    assert_eq!(error.cause, Cause::ReadOnly, "{error:?}");
    assert!(error.to_string().contains("replica"), "{error}");
    replica.promote();
    assert_ne!(before, process(&*second).await);
    assert_eq!(before, process(&*first).await);
}

pub(crate) async fn records_are_swept_and_no_version_comes_back<D: Database>(server: D) {
    let store = store(&server).await;
    let draft = |number, until| Draft {
        record: b"x".to_vec(),
        number,
        has_news: false,
        useful_until: until,
    };
    let keys = ["over", "later", "never"].map(Key::new);
    let untils = [Some(WallMillis(1)), Some(WallMillis(1 << 60)), None];
    for (key, until) in keys.iter().zip(untils) {
        store.write_if(key, None, draft(4, until)).await.unwrap();
    }
    let version = async || {
        let snapshot = store.read(&keys[0]).await.unwrap();
        snapshot.stored.map(|stored| stored.version)
    };
    let before = version().await;
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(version().await, None);
    assert!(store.read(&keys[1]).await.unwrap().stored.is_some());
    let again = store.write_if(&keys[0], None, draft(8, None)).await;
    again.unwrap();
    assert_ne!(before, version().await);
}

pub(crate) async fn errors_say_what_to_do<D: Database>(mut server: D) {
    let error = check(&*bare(&server)).await.unwrap_err();
    assert_eq!(error.cause, Cause::Unsupported, "{error:?}");
    assert!(
        error.to_string().contains("quorlock init ADDRESS"),
        "{error}"
    );
    server.kill();
    let error = check(&*bare(&server)).await.unwrap_err();
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
}

pub(crate) async fn a_client_is_made_from_an_address<D: Database>(server: D) {
    let address = server.address();
    assert!(Locks::init(&address).await.unwrap());
    assert!(Locks::init(&address).await.unwrap(), "a second time");
    assert!(
        Locks::schema(&address)
            .unwrap()
            .unwrap()
            .contains("quorlock")
    );
    let (one, other) = (Locks::connect(&address), Locks::connect(&address));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let guard = one.lock("a").acquire().await.unwrap();
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    let guard = other.lock("a").try_acquire().await.unwrap();
    guard.unwrap().release().await.unwrap();
}

/// Kills a member's server between two holds.
pub(crate) async fn survives_the_loss_of<D: Database>(server: &mut D, locks: &Locks) {
    let guard = locks.lock("a").acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    server.kill();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(token < guard.fencing_token());
    guard.release().await.unwrap();
}

/// One of three stores is a table, one a file, and one is in memory.
pub(crate) async fn a_majority_of_unlike_stores_survives_the_loss_of_one<D: Database>(
    mut server: D,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteStore::create(folder.path().join("locks")).unwrap();
    let transports = [
        StoreTransport::new(store(&server).await),
        StoreTransport::new(file),
        StoreTransport::new(MemoryStore::new()),
    ];
    let builder = Locks::builder().member_timeout(9 * SECOND);
    let builder = builder.trust_fresh_nodes();
    let locks = builder.on_nodes(transports).unwrap();
    survives_the_loss_of(&mut server, &locks).await;
}
