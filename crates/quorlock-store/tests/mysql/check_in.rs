//! The lock and the data in one transaction.

use mysql_async::prelude::Queryable;
use mysql_async::{IsolationLevel, Transaction, TxOpts};
use quorlock::{Guard, Locks};
use quorlock_store::CheckInError;
use quorlock_testbed::mysql::Mysql;

use crate::customers::{REFUSED, three_buy};
use crate::databases::SECOND;
use crate::shop::{PIECES, buy, connect, left, open};

/// Runs a process that buys a piece.
pub(crate) fn customer(mut arguments: impl Iterator<Item = String>) {
    let address = arguments.next().unwrap();
    let is_checked = arguments.next().as_deref() == Some("checked");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(buy(&address, is_checked));
}

pub(crate) async fn a_holder_that_was_stopped_cannot_commit(server: Mysql) {
    let address = server.address();
    open(&address).await;
    let said = three_buy(&address, "checked").await;
    assert_eq!(said.first().map(String::as_str), Some(REFUSED), "{said:?}");
    assert_eq!(left(&address).await, PIECES - 3);
}

/// The test of the test: what a lock alone does not prevent.
pub(crate) async fn without_the_check_a_piece_is_sold_twice(server: Mysql) {
    let address = server.address();
    open(&address).await;
    three_buy(&address, "unchecked").await;
    assert_eq!(left(&address).await, PIECES - 1);
}

const SELL: &str = "UPDATE stock SET pieces = pieces - 1";

/// Ignores that a transaction was refused: goes on to write, and commits.
async fn ignore(mut transaction: Transaction<'_>) {
    assert!(transaction.query_drop(SELL).await.is_err());
    assert!(transaction.commit().await.is_err());
}

/// Checks that a transaction is refused with this error, and that its commit writes nothing.
async fn refused(address: &str, guard: &Guard) -> CheckInError {
    let mut conn = connect(address).await;
    let mut transaction = conn.start_transaction(TxOpts::new()).await.unwrap();
    transaction.query_drop(SELL).await.unwrap();
    let error = guard.check_in(&mut transaction).await.unwrap_err();
    ignore(transaction).await;
    assert_eq!(left(address).await, PIECES);
    error
}

fn is_not_held(error: &CheckInError) -> bool {
    matches!(error, CheckInError::NotHeld { .. })
}

pub(crate) async fn every_kind_of_lock_can_be_checked_in_and_none_that_is_gone(server: Mysql) {
    let address = server.address();
    open(&address).await;
    let builder = Locks::builder().member_timeout(9 * SECOND);
    let locks = builder.key_prefix("app:").connect(&address).await.unwrap();
    let mut conn = connect(&address).await;
    for lock in [
        locks.lock("a"),
        locks.fair("b"),
        locks.read("c"),
        locks.write("d"),
        locks.all(["f", "e", "{e}"]),
        locks.lock(b"bytes \xff\xfe".as_slice()),
    ] {
        let guard = lock.acquire().await.unwrap();
        for _ in 0..2 {
            let mut transaction = conn.start_transaction(TxOpts::new()).await.unwrap();
            guard.check_in(&mut transaction).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let name = guard.names().next().unwrap().clone();
        locks.force_release(&name).await.unwrap();
        assert!(is_not_held(&refused(&address, &guard).await));
        // Another owner has it now.
        let other = locks.lock(&name).acquire().await;
        assert!(is_not_held(&refused(&address, &guard).await));
        drop(other);
    }
}

/// While a transaction has checked in, no other client is granted the name, even if the hold ends.
pub(crate) async fn a_claim_that_is_checked_in_stays_until_the_commit(server: Mysql) {
    let address = server.address();
    open(&address).await;
    let connect_locks = async || {
        let builder = Locks::builder().member_timeout(20 * SECOND);
        let builder = builder.watchdog_lease(30 * SECOND);
        builder.connect(&address).await.unwrap()
    };
    let (one, other) = (connect_locks().await, connect_locks().await);
    let guard = one.lock("a").acquire().await.unwrap();
    let mut conn = connect(&address).await;
    let mut transaction = conn.start_transaction(TxOpts::new()).await.unwrap();
    transaction.query_drop(SELL).await.unwrap();
    guard.check_in(&mut transaction).await.unwrap();
    let forced = tokio::spawn(async move { other.force_release("a").await });
    // The release by force waits for the row.
    let mut looking = connect(&address).await;
    let waits = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
    let mut waits = async || -> Option<(String, u64)> { looking.query_first(waits).await.unwrap() };
    while waits().await.unwrap().1 == 0 {
        assert!(!forced.is_finished(), "it did not wait");
        tokio::time::sleep(SECOND / 50).await;
    }
    transaction.commit().await.unwrap();
    assert_eq!(left(&address).await, PIECES - 1);
    // It may have ended in the time-out of its call.
    let _ = forced.await.unwrap();
}

pub(crate) async fn what_cannot_be_checked_in_is_said(server: Mysql) {
    let address = server.address();
    open(&address).await;
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}/locks.db", folder.path().display());
    Locks::init(&file).await.unwrap();
    // The claim is in another database.
    let elsewhere = Locks::connect(&file).await.unwrap();
    let guard = elsewhere.lock("a").acquire().await.unwrap();
    assert!(is_not_held(&refused(&address, &guard).await));
    let both = Locks::builder().trust_fresh_nodes();
    let both = both.member_timeout(9 * SECOND).quorum([&address, &file]);
    let guard = both.await.unwrap().lock("b").acquire().await.unwrap();
    let error = refused(&address, &guard).await;
    assert_eq!(error, CheckInError::SeveralNodes);
    // A transaction that began before the claim was renewed checks the renewed one, as rows that are locked are read in their latest
    // version. A server that keeps snapshots apart refuses it.
    let locks = Locks::connect(&address).await.unwrap();
    let guard = locks.lock("c").acquire().await.unwrap();
    for (setting, expected) in [(0, Ok(())), (1, Err(CheckInError::Conflict))] {
        let mut conn = connect(&address).await;
        let setting = format!("SET SESSION innodb_snapshot_isolation = {setting}");
        conn.query_drop(setting).await.unwrap();
        let mut options = TxOpts::new();
        options.with_isolation_level(IsolationLevel::RepeatableRead);
        options.with_consistent_snapshot(true);
        let mut transaction = conn.start_transaction(options).await.unwrap();
        guard.extend(40 * SECOND).await.unwrap();
        assert_eq!(guard.check_in(&mut transaction).await, expected);
        match expected {
            Ok(()) => transaction.rollback().await.unwrap(),
            Err(_) => ignore(transaction).await,
        }
    }
    server.execute("DROP TABLE quorlock");
    let error = refused(&address, &guard).await;
    assert!(error.to_string().contains("quorlock init"), "{error}");
}
