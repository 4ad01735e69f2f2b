//! Locks in a table of a real PostgreSQL server. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod server;
#[path = "../support/mod.rs"]
mod support;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use quorlock::Locks;
use quorlock_store::{
    Cause, Draft, Key, MemoryStore, PostgresStore, SqliteStore, Store, StoreTransport, WallMillis,
    conformance,
};
use server::{PASSWORD, Server, installed};

const SECOND: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let is_required = std::env::var_os("QUORLOCK_REQUIRE_POSTGRES").is_some_and(|it| it == "1");
    let is_installed = installed().is_some();
    assert!(is_installed || !is_required, "PostgreSQL is not installed");
    let trial = |name: &str, test: fn()| {
        let name = match is_installed {
            true => name.to_owned(),
            false => format!("{name} (needs PostgreSQL: apt-get install postgresql)"),
        };
        let test = move || {
            test();
            Ok(())
        };
        Trial::test(name, test).with_ignored_flag(!is_installed)
    };
    let trials = vec![
        trial("a_table_keeps_the_rules_of_a_store", || run(rules)),
        trial(
            "clients_of_one_table_exclude_each_other_and_are_woken",
            || run(clients),
        ),
        trial("a_server_that_restarts_keeps_its_claims", || run(restart)),
        trial("a_server_that_stands_still_ends_no_claim_early", || {
            run(stopped)
        }),
        trial(
            "a_replica_takes_no_writes_and_is_another_process_once_promoted",
            || run(replica),
        ),
        trial("records_are_swept_and_no_version_comes_back", || run(sweep)),
        trial(
            "a_majority_of_unlike_stores_survives_the_loss_of_one",
            || run(unlike),
        ),
        trial("a_table_of_a_stranger_is_an_error", || run(stranger)),
        trial("errors_say_what_to_do", || run(errors)),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run<F: Future<Output = ()>>(test: fn(Server) -> F) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(test(Server::start()));
}

async fn store(server: &Server) -> PostgresStore {
    let store = PostgresStore::new(&server.address()).unwrap();
    store.create_table().await.unwrap();
    store.check().await.unwrap();
    store
}

/// Returns a client that waits for long: the machine may be busy.
fn patient(store: PostgresStore) -> Locks {
    let transport = StoreTransport::new(store).call_timeout(20 * SECOND);
    let builder = Locks::builder().member_timeout(9 * SECOND);
    builder.on_node(transport).unwrap()
}

async fn rules(server: Server) {
    let store = store(&server).await;
    let checked = conformance::check(Arc::new(store.clone()), "test/").await;
    assert_eq!(checked, Ok(()));
    assert!(!format!("{store:?}").contains(PASSWORD));
}

async fn clients(server: Server) {
    store(&server).await;
    let began = Instant::now();
    let stores = (0..6).map(|_| PostgresStore::new(&server.address()).unwrap());
    support::exclude_each_other(stores).await;
    // Without wake-ups each of the sixty holds would begin after five seconds.
    assert!(began.elapsed() < 60 * SECOND, "{:?}", began.elapsed());
}

async fn restart(mut server: Server) {
    let store = store(&server).await;
    let locks = patient(store);
    let guard = locks.lock("a").acquire().await.unwrap();
    let waiting = locks.lock("b").acquire().await.unwrap();
    // It is ended without a checkpoint, with synchronous_commit off by default.
    server.kill();
    server.launch();
    let other = PostgresStore::new(&server.address()).unwrap();
    let other = patient(other);
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(other.lock("a").try_acquire().await.unwrap().is_some());
    drop(waiting);
}

async fn stopped(server: Server) {
    let store = store(&server).await;
    let builder = Locks::builder().watchdog_lease(3 * SECOND);
    let locks = builder.on_node(StoreTransport::new(store)).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    server.signal("-STOP");
    guard.lost().await;
    server.signal("-CONT");
    let other = PostgresStore::new(&server.address()).unwrap();
    let other = Locks::on_node(StoreTransport::new(other)).unwrap();
    let taken = other.lock("a").acquire().await.unwrap();
    assert!(guard.fencing_token() < taken.fencing_token());
}

async fn replica(server: Server) {
    let first = store(&server).await;
    let key = Key::new("a");
    let before = first.read(&key).await.unwrap().stamp.process;
    let replica = server.replica();
    let second = PostgresStore::new(&replica.address()).unwrap();
    let error = second.check().await.unwrap_err();
    assert_eq!(error.cause, Cause::ReadOnly, "{error:?}");
    assert!(error.to_string().contains("replica"), "{error}");
    replica.promote();
    let after = second.read(&key).await.unwrap().stamp.process;
    assert_ne!(before, after);
    assert_eq!(before, first.read(&key).await.unwrap().stamp.process);
}

async fn sweep(server: Server) {
    let store = store(&server).await;
    let draft = |until| Draft {
        record: b"x".to_vec(),
        has_news: false,
        useful_until: until,
    };
    let keys = ["over", "later", "never"].map(Key::new);
    let untils = [Some(WallMillis(1)), Some(WallMillis(1 << 60)), None];
    for (key, until) in keys.iter().zip(untils) {
        store.write_if(key, None, draft(until)).await.unwrap();
    }
    let version = async || {
        store
            .read(&keys[0])
            .await
            .unwrap()
            .stored
            .map(|it| it.version)
    };
    let before = version().await;
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(version().await, None);
    assert!(store.read(&keys[1]).await.unwrap().stored.is_some());
    store.write_if(&keys[0], None, draft(None)).await.unwrap();
    assert_ne!(before, version().await);
}

/// One of three stores is a table, one a file, and one is in memory.
async fn unlike(mut server: Server) {
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
    let guard = locks.lock("a").acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    server.kill();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(token < guard.fencing_token());
    guard.release().await.unwrap();
}

async fn stranger(server: Server) {
    let sql = "CREATE TABLE quorlock (key bytea PRIMARY KEY, version text, record text, useful_until bigint);
        CREATE SEQUENCE quorlock_version;";
    server.execute(sql);
    let store = PostgresStore::new(&server.address()).unwrap();
    let error = store.check().await.unwrap_err();
    assert!(error.to_string().contains("quorlock"), "{error:?}");
}

async fn errors(mut server: Server) {
    let check = async |address: &str| match PostgresStore::new(address) {
        Ok(store) => store.check().await.unwrap_err(),
        Err(error) => error,
    };
    let right = server.address();
    for (address, cause, words) in [
        (right.clone(), Cause::Unsupported, "create_table"),
        (
            right.replace(PASSWORD, "wrong"),
            Cause::NoAuth,
            "pg_hba.conf",
        ),
        (
            right.replace("/postgres", "/missing"),
            Cause::NoDatabase,
            "no such database",
        ),
        (format!("{right}?sslmode=require"), Cause::Tls, "with_tls"),
        (
            right.replace("postgres://", "mysql://"),
            Cause::Unreachable,
            "invalid",
        ),
    ] {
        let error = check(&address).await;
        assert_eq!(error.cause, cause, "{address}: {error:?}");
        assert!(error.to_string().contains(words), "{address}: {error}");
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");
    }
    server.kill();
    let error = check(&right).await;
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
}
