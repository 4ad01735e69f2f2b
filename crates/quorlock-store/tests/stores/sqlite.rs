//! Locks in a file of SQLite.

use std::sync::Arc;
use std::time::Duration;

use quorlock::errors::NodeProblem;
use quorlock::{ConnectError, Locks};
use quorlock_store::{
    Cause, CheckIn, CheckInError, Draft, Key, SqliteStore, Store, StoreTransport, WallMillis,
    conformance,
};

fn draft() -> Draft {
    Draft {
        record: b"x".to_vec(),
        number: 2,
        has_news: false,
        useful_until: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_the_rules_of_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::create(folder.path().join("locks")).unwrap();
    let checked = conformance::check(Arc::new(store), "test/").await;
    assert_eq!(checked, Ok(()));
}

/// Each client has its own connection, as each program has.
#[tokio::test(flavor = "multi_thread")]
async fn clients_of_one_file_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    SqliteStore::create(&path).unwrap();
    let stores = (0..4).map(|_| SqliteStore::open(&path).unwrap());
    crate::support::exclude_each_other(stores).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_swept_when_its_time_is_over_and_its_version_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::create(folder.path().join("locks")).unwrap();
    let draft = |number, until| Draft {
        number,
        useful_until: until,
        ..draft()
    };
    let keys = ["over", "later", "never"].map(Key::new);
    let untils = [Some(WallMillis(1)), Some(WallMillis(1 << 60)), None];
    for (key, until) in keys.iter().zip(untils) {
        store.write_if(key, None, draft(4, until)).await.unwrap();
    }
    let before = store.read(&keys[0]).await.unwrap().stored.unwrap().version;
    assert_eq!(store.sweep().await, Ok(1));
    assert_eq!(store.read(&keys[0]).await.unwrap().stored, None);
    assert!(store.read(&keys[1]).await.unwrap().stored.is_some());
    assert!(store.read(&keys[2]).await.unwrap().stored.is_some());
    store
        .write_if(&keys[0], None, draft(8, None))
        .await
        .unwrap();
    let after = store.read(&keys[0]).await.unwrap().stored.unwrap().version;
    assert_ne!(before, after);
}

/// The file goes back to an earlier state. Then one client writes to it as often as the other had done, which remembers the
/// record as free.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_in_a_restored_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let [path, copy] = ["locks", "copy"].map(|name| folder.path().join(name));
    let client = || Locks::on_node(StoreTransport::new(SqliteStore::create(&path).unwrap()));
    let ours = client().unwrap();
    std::fs::copy(&path, &copy).unwrap();
    let guard = ours.lock("a").acquire().await.unwrap();
    guard.release().await.unwrap();
    std::fs::rename(&copy, &path).unwrap();
    // SQLite notices that the file was replaced. From then on, the client uses the new one.
    ours.lock("b").try_acquire().await.unwrap_err();
    let theirs = client().unwrap();
    let guard = theirs.lock("a").acquire().await.unwrap();
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(ours.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let missing = SqliteStore::open(path("missing")).unwrap_err();
    assert_eq!(missing.cause, Cause::NoDatabase);
    assert!(
        missing.to_string().contains("quorlock init ADDRESS"),
        "{missing}"
    );
    std::fs::write(
        path("text"),
        "not a database, but long enough to look at".repeat(99),
    )
    .unwrap();
    let text = SqliteStore::create(path("text")).unwrap_err();
    assert!(text.to_string().contains("not a database"), "{text}");
    std::fs::write(path("empty"), "").unwrap();
    let empty = SqliteStore::open(path("empty")).unwrap_err();
    assert_eq!(empty.cause, Cause::Unsupported);
    assert!(
        empty.to_string().contains("init --print ADDRESS"),
        "{empty}"
    );
}

/// Returns why no client was made of the file at this path.
async fn refused(path: &std::path::Path) -> (Cause, String) {
    let address = format!("sqlite:{}", path.display());
    match Locks::connect(address).await.unwrap_err() {
        ConnectError::Nodes { mut problems, .. } => match problems.remove(0) {
            NodeProblem::Store { error, .. } => (error.cause, error.to_string()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (cause, said) = refused(&path("missing")).await;
    assert_eq!(cause, Cause::NoDatabase);
    assert!(said.contains("`quorlock init ADDRESS`"), "{said}");
    std::fs::write(path("empty"), "").unwrap();
    let (cause, said) = refused(&path("empty")).await;
    assert_eq!(cause, Cause::Unsupported);
    assert!(said.contains("`quorlock init ADDRESS`"), "{said}");
    let strange = rusqlite::Connection::open(path("strange")).unwrap();
    let table = "CREATE TABLE quorlock (key, record, more); CREATE TABLE quorlock_process (a)";
    strange.execute_batch(table).unwrap();
    let (cause, said) = refused(&path("strange")).await;
    assert_eq!(cause, Cause::Unsupported);
    assert!(said.contains("another program's"), "{said}");
}

#[tokio::test]
async fn a_record_that_is_none_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let store = SqliteStore::create(&path).unwrap();
    let put = async |key: &str, record: &[u8]| {
        let draft = Draft {
            record: record.to_vec(),
            ..draft()
        };
        store.write_if(&Key::new(key), None, draft).await.unwrap();
    };
    let locks = Locks::connect(format!("sqlite:{}", path.display())).await;
    let locks = locks.unwrap();
    for (name, record, words) in [
        ("later", "quorlock/2 0000000000000001\n", "newer"),
        ("strange", "SELECT 1", "another program"),
    ] {
        put(name, record.as_bytes()).await;
        let error = locks.lock(name).acquire().await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    put("quorlock_marker", b"quorlock/2 0000000000000001\n").await;
    let (cause, said) = refused(&path).await;
    assert_eq!(cause, Cause::Unsupported, "{said}");
}

/// The file is replaced, as by a deployment that starts anew. SQLite notices it, and the client opens the new file.
#[tokio::test]
async fn a_file_that_was_replaced_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let store = SqliteStore::create(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let new = SqliteStore::create(&path).unwrap();
    let key = Key::new("a");
    let error = store.write_if(&key, None, draft()).await.unwrap_err();
    assert_eq!(error.cause, Cause::ReadOnly, "{error}");
    store.write_if(&key, None, draft()).await.unwrap();
    assert!(new.read(&key).await.unwrap().stored.is_some());
}

/// A copy of the file has the same number, so a majority does not count it as a store of its own.
#[tokio::test]
async fn a_file_is_one_process_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let process =
        async |store: SqliteStore| store.read(&Key::new("a")).await.unwrap().stamp.process;
    let first = process(SqliteStore::create(&path).unwrap()).await;
    assert_eq!(first, process(SqliteStore::create(&path).unwrap()).await);
    let other = SqliteStore::create(folder.path().join("other")).unwrap();
    assert_ne!(first, process(other).await);
}

/// Checks that a sale is refused, and that its commit fails although the error is ignored.
fn is_refused(database: &mut rusqlite::Connection, guard: &quorlock::Guard) -> CheckInError {
    let mut sale = database.transaction().unwrap();
    sale.execute("UPDATE stock SET pieces = 0", []).unwrap();
    let error = guard.check_in(&mut sale).unwrap_err();
    sale.commit().unwrap_err();
    let pieces = database.query_row("SELECT pieces FROM stock", [], |row| row.get(0));
    assert_eq!(pieces, Ok(3));
    error
}

#[tokio::test]
async fn a_transaction_is_committed_only_while_the_lock_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let address = format!("sqlite:{}", path.display());
    Locks::init(&address).await.unwrap();
    let mut database = rusqlite::Connection::open(&path).unwrap();
    let table = "CREATE TABLE stock (pieces); INSERT INTO stock VALUES (3)";
    database.execute_batch(table).unwrap();
    let locks = Locks::connect(&address).await.unwrap();
    for lock in [locks.lock("a"), locks.read("b"), locks.all(["d", "c"])] {
        let guard = lock.acquire().await.unwrap();
        let claims = guard.claims();
        let checked = std::thread::scope(|scope| {
            let sale = scope.spawn(|| {
                let mut sale = database.transaction().unwrap();
                sale.execute("UPDATE stock SET pieces = 3", []).unwrap();
                sale.check_in(claims).unwrap();
                sale.commit()
            });
            sale.join().unwrap()
        });
        checked.unwrap();
        let name = guard.names().next().unwrap().clone();
        locks.force_release(&name).await.unwrap();
        let error = is_refused(&mut database, &guard);
        assert!(matches!(error, CheckInError::NotHeld { .. }), "{error}");
    }
    // The claim is in an attached file, whose records the transaction does not lock.
    let mut other = rusqlite::Connection::open(folder.path().join("data.db")).unwrap();
    other.execute_batch(table).unwrap();
    let attach = format!("ATTACH '{}' AS locks", path.display());
    other.execute_batch(&attach).unwrap();
    let guard = locks.lock("e").acquire().await.unwrap();
    let error = is_refused(&mut other, &guard);
    assert!(error.to_string().contains("no tables for locks"), "{error}");
}

/// The hold would pass to the next caller with the same owner, and the claims of the hold before would still be there.
#[tokio::test]
async fn the_claims_of_a_released_hold_do_not_become_those_of_the_next_caller() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.db");
    let address = format!("sqlite:{}", path.display());
    Locks::init(&address).await.unwrap();
    let mut database = rusqlite::Connection::open(&path).unwrap();
    let locks = Locks::connect(&address).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let lock = locks.lock("a");
    let next = tokio::spawn(async move { lock.acquire().await.unwrap() });
    tokio::task::yield_now().await;
    let claims = guard.claims();
    guard.release().await.unwrap();
    let next = next.await.unwrap();
    let mut sale = database.transaction().unwrap();
    let error = sale.check_in(claims).unwrap_err();
    assert!(matches!(error, CheckInError::NotHeld { .. }), "{error}");
    drop(sale);
    let mut sale = database.transaction().unwrap();
    next.check_in(&mut sale).unwrap();
    sale.commit().unwrap();
}
