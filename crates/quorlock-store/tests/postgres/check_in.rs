//! The lock and the data in one transaction.

use quorlock::{Guard, Locks};
use quorlock_store::CheckInError;
use quorlock_testbed::postgres::Postgres;
use tokio_postgres::{Client, Transaction};

use crate::customers::{REFUSED, three_buy};
use crate::databases::SECOND;
use crate::shop::{self, PIECES, Sale, buy, connect, open};

/// Runs a process that buys a piece.
pub(crate) fn customer(mut arguments: impl Iterator<Item = String>) {
    let address = arguments.next().unwrap();
    let sale = match arguments.next().as_deref() {
        Some("unchecked") => Sale::Unchecked,
        _ => Sale::Checked,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(buy(&address, sale)).unwrap();
}

pub(crate) async fn a_holder_that_was_stopped_cannot_commit(server: Postgres) {
    let address = server.address();
    open(&address).await.unwrap();
    let said = three_buy(&address, "checked").await;
    assert_eq!(said.first().map(String::as_str), Some(REFUSED), "{said:?}");
    assert_eq!(left(&connect(&address).await.unwrap()).await, PIECES - 3);
}

/// The test of the test: what a lock alone does not prevent.
pub(crate) async fn without_the_check_a_piece_is_sold_twice(server: Postgres) {
    let address = server.address();
    open(&address).await.unwrap();
    three_buy(&address, "unchecked").await;
    assert_eq!(left(&connect(&address).await.unwrap()).await, PIECES - 1);
}

async fn left(client: &Client) -> i64 {
    let row = client.query_one("SELECT pieces FROM stock", &[]).await;
    row.unwrap().get(0)
}

async fn sells(transaction: &Transaction<'_>) {
    let sql = "UPDATE stock SET pieces = pieces - 1";
    transaction.execute(sql, &[]).await.unwrap();
}

/// Checks that a transaction is refused with this error, and that its commit writes nothing.
async fn refused(client: &mut Client, guard: &Guard) -> CheckInError {
    let mut transaction = client.transaction().await.unwrap();
    sells(&transaction).await;
    let error = guard.check_in(&mut transaction).await.unwrap_err();
    // The error is ignored.
    let _ = transaction.commit().await;
    assert_eq!(left(client).await, PIECES);
    error
}

fn is_not_held(error: &CheckInError) -> bool {
    matches!(error, CheckInError::NotHeld { .. })
}

pub(crate) async fn every_kind_of_lock_can_be_checked_in_and_none_that_is_gone(server: Postgres) {
    let address = server.address();
    open(&address).await.unwrap();
    let builder = || {
        Locks::builder()
            .member_timeout(9 * SECOND)
            .key_prefix("app:")
    };
    let locks = builder().connect(&address).await.unwrap();
    let mut client = connect(&address).await.unwrap();
    for lock in [
        locks.lock("a"),
        locks.fair("b"),
        locks.read("c"),
        locks.write("d"),
        locks.all(["f", "e", "{e}"]),
    ] {
        let guard = lock.acquire().await.unwrap();
        for _ in 0..2 {
            let mut transaction = client.transaction().await.unwrap();
            guard.check_in(&mut transaction).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let name = guard.names().next().unwrap().clone();
        locks.force_release(&name).await.unwrap();
        assert!(is_not_held(&refused(&mut client, &guard).await));
        // Another owner has it now.
        let other = locks.lock(&name).acquire().await;
        assert!(is_not_held(&refused(&mut client, &guard).await));
        drop(other);
    }
}

/// While a transaction has checked in, no other client is granted the name, even if the hold ends.
pub(crate) async fn a_claim_that_is_checked_in_stays_until_the_commit(server: Postgres) {
    let address = server.address();
    open(&address).await.unwrap();
    let connect_locks = async || {
        let builder = Locks::builder().member_timeout(20 * SECOND);
        builder
            .watchdog_lease(30 * SECOND)
            .connect(&address)
            .await
            .unwrap()
    };
    let (one, other) = (connect_locks().await, connect_locks().await);
    let guard = one.lock("a").acquire().await.unwrap();
    let mut client = connect(&address).await.unwrap();
    let mut transaction = client.transaction().await.unwrap();
    sells(&transaction).await;
    guard.check_in(&mut transaction).await.unwrap();
    let forced = tokio::spawn(async move { other.force_release("a").await });
    // The release by force waits for the row.
    let looking = shop::connect(&address).await.unwrap();
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    loop {
        let row = looking.query_one(waits, &[]).await.unwrap();
        if 0 < row.get::<_, i64>(0) {
            break;
        }
        assert!(!forced.is_finished(), "it did not wait");
        tokio::time::sleep(SECOND / 50).await;
    }
    transaction.commit().await.unwrap();
    assert_eq!(left(&client).await, PIECES - 1);
    // It may have ended in the time-out of its call.
    let _ = forced.await.unwrap();
}

pub(crate) async fn what_cannot_be_checked_in_is_said(server: Postgres) {
    let address = server.address();
    open(&address).await.unwrap();
    let mut client = connect(&address).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = format!("sqlite:{}/locks.db", folder.path().display());
    Locks::init(&file).await.unwrap();
    // The claim is in another database.
    let elsewhere = Locks::connect(&file).await.unwrap();
    let guard = elsewhere.lock("a").acquire().await.unwrap();
    assert!(is_not_held(&refused(&mut client, &guard).await));
    let both = Locks::builder()
        .trust_fresh_nodes()
        .member_timeout(9 * SECOND);
    let both = both.quorum([&address, &file]).await.unwrap();
    let guard = both.lock("b").acquire().await.unwrap();
    let error = refused(&mut client, &guard).await;
    assert_eq!(error, CheckInError::SeveralNodes);
    // A transaction that began before the claim was renewed sees an older record.
    let locks = Locks::connect(&address).await.unwrap();
    let guard = locks.lock("c").acquire().await.unwrap();
    let strict = client.build_transaction();
    let strict = strict.isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let mut transaction = strict.start().await.unwrap();
    sells(&transaction).await;
    guard.extend(40 * SECOND).await.unwrap();
    let error = guard.check_in(&mut transaction).await;
    assert_eq!(error, Err(CheckInError::Conflict));
    drop(transaction);
    server.execute("DROP TABLE quorlock");
    let error = refused(&mut client, &guard).await;
    assert!(error.to_string().contains("quorlock init"), "{error}");
}
