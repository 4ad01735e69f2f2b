//! Locks in a table of a real PostgreSQL server. Without one they are listed as ignored.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod addresses;
mod check_in;
#[path = "../../examples/checked_in.rs"]
#[allow(dead_code, reason = "the example has a main function of its own")]
mod shop;
#[path = "../support/mod.rs"]
mod support;

use std::future::{Future, poll_fn};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use quorlock::Locks;
use quorlock_store::{
    Cause, Draft, Key, MemoryStore, PostgresStore, SqliteStore, Store, StoreTransport, WallMillis,
    conformance,
};
use quorlock_testbed::postgres::{Postgres, missing};
use quorlock_testbed::trials::conclude;
use tokio_postgres::{AsyncMessage, NoTls};

const SECOND: Duration = Duration::from_secs(1);

/// Each test has a server of its own.
macro_rules! trials {
    ($($($path:ident)::+),* $(,)?) => {
        vec![$(trial(stringify!($($path)::+), $($path)::+)),*]
    };
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq(check_in::BUY).is_some() {
        check_in::customer(arguments);
        return ExitCode::SUCCESS;
    }
    let trials = trials![
        a_table_keeps_the_rules_of_a_store,
        clients_of_one_table_exclude_each_other_and_are_woken,
        a_write_is_told_only_if_a_client_listens,
        a_server_that_restarts_keeps_its_claims,
        a_server_that_stands_still_ends_no_claim_early,
        a_replica_takes_no_writes_and_is_another_process_once_promoted,
        records_are_swept_and_no_version_comes_back,
        a_majority_of_unlike_stores_survives_the_loss_of_one,
        errors_say_what_to_do,
        addresses::a_client_is_made_from_an_address,
        addresses::a_majority_of_a_table_a_file_and_a_redis_server_survives_the_loss_of_one,
        addresses::locks_of_several_stores_are_taken_together,
        addresses::what_is_wrong_with_an_address_is_said,
        addresses::what_is_wrong_with_a_database_is_said,
        addresses::a_record_that_is_none_is_said,
        check_in::a_holder_that_was_stopped_cannot_commit,
        check_in::without_the_check_a_piece_is_sold_twice,
        check_in::every_kind_of_lock_can_be_checked_in_and_none_that_is_gone,
        check_in::a_claim_that_is_checked_in_stays_until_the_commit,
        check_in::what_cannot_be_checked_in_is_said,
    ];
    conclude(&Arguments::from_args(), trials, missing()).exit_code()
}

fn trial<F: Future<Output = ()> + 'static>(name: &str, test: fn(Postgres) -> F) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(test(Postgres::start()));
        Ok(())
    })
}

async fn store(server: &Postgres) -> PostgresStore {
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

async fn a_table_keeps_the_rules_of_a_store(server: Postgres) {
    let store = store(&server).await;
    let checked = conformance::check(Arc::new(store.clone()), "test/").await;
    assert_eq!(checked, Ok(()));
    assert!(!format!("{store:?}").contains(Postgres::PASSWORD));
}

async fn clients_of_one_table_exclude_each_other_and_are_woken(server: Postgres) {
    store(&server).await;
    let began = Instant::now();
    let stores = (0..6).map(|_| PostgresStore::new(&server.address()).unwrap());
    support::exclude_each_other(stores).await;
    // Without wake-ups each of the sixty holds would begin after five seconds: after 300 s in all.
    assert!(began.elapsed() < 200 * SECOND, "{:?}", began.elapsed());
}

/// The server commits transactions with messages one after another, so a write that no client waits for sends none.
async fn a_write_is_told_only_if_a_client_listens(server: Postgres) {
    let held = patient(store(&server).await);
    let waiting = patient(PostgresStore::new(&server.address()).unwrap());
    let (ear, mut connection) = tokio_postgres::connect(&server.address(), NoTls)
        .await
        .unwrap();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(notice) = message {
                let _ = tell.send(notice.payload().to_owned());
            }
        }
    });
    ear.batch_execute("LISTEN quorlock").await.unwrap();
    for _ in 0..3 {
        let guard = held.lock("a").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    ear.batch_execute("NOTIFY quorlock, 'end'").await.unwrap();
    assert_eq!(told.recv().await.as_deref(), Some("end"));
    let guard = held.lock("a").acquire().await.unwrap();
    let waiter = tokio::spawn(async move { waiting.lock("a").acquire().await.unwrap() });
    let listens = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    while ear.query_one(listens, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(SECOND / 50).await;
    }
    guard.release().await.unwrap();
    assert!(told.recv().await.unwrap().starts_with("61 quorlock/1"));
    waiter.await.unwrap().release().await.unwrap();
}

async fn a_server_that_restarts_keeps_its_claims(mut server: Postgres) {
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

async fn a_server_that_stands_still_ends_no_claim_early(server: Postgres) {
    let store = store(&server).await;
    let builder = Locks::builder().watchdog_lease(3 * SECOND);
    let locks = builder.on_node(StoreTransport::new(store)).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    server.stop();
    guard.lost().await;
    server.go_on();
    let other = PostgresStore::new(&server.address()).unwrap();
    let other = Locks::on_node(StoreTransport::new(other)).unwrap();
    let taken = other.lock("a").acquire().await.unwrap();
    assert!(guard.fencing_token() < taken.fencing_token());
}

async fn a_replica_takes_no_writes_and_is_another_process_once_promoted(server: Postgres) {
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

async fn records_are_swept_and_no_version_comes_back(server: Postgres) {
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
    store
        .write_if(&keys[0], None, draft(8, None))
        .await
        .unwrap();
    assert_ne!(before, version().await);
}

/// Kills a member's server between two holds.
pub(crate) async fn survives_the_loss_of(server: &mut Postgres, locks: &Locks) {
    let guard = locks.lock("a").acquire().await.unwrap();
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    server.kill();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(token < guard.fencing_token());
    guard.release().await.unwrap();
}

/// One of three stores is a table, one a file, and one is in memory.
async fn a_majority_of_unlike_stores_survives_the_loss_of_one(mut server: Postgres) {
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

async fn errors_say_what_to_do(mut server: Postgres) {
    let address = server.address();
    let check = async || {
        let store = PostgresStore::new(&address).unwrap();
        store.check().await.unwrap_err()
    };
    let error = check().await;
    assert_eq!(error.cause, Cause::Unsupported, "{error:?}");
    assert!(error.to_string().contains("create_table"), "{error}");
    server.kill();
    let error = check().await;
    assert_eq!(error.cause, Cause::Unreachable, "{error:?}");
}
