//! The lock and the data in one transaction.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use quorlock::{Guard, Locks};
use quorlock_store::CheckInError;
use quorlock_testbed::postgres::Postgres;
use tokio_postgres::{Client, Transaction};

use crate::shop::{PIECES, Sale, buy, connect, open};
use crate::{SECOND, shop};

/// The first argument of a process that buys.
pub(crate) const BUY: &str = "buy";

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

struct Customer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Customer {
    /// Starts a process, and waits until it has read the stock.
    fn start(address: &str, sale: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([BUY, address, sale]).stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut customer = Customer { process, lines };
        assert!(customer.line().contains("pieces are left: buy one?"));
        customer
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn signal(&self, signal: &str) {
        let words = ["-c", "kill $0 $1", signal, &self.process.id().to_string()];
        let sent = Command::new("sh").args(words).status();
        assert!(sent.unwrap().success());
    }

    /// Lets the process buy. Returns what it said.
    fn buy(mut self) -> Vec<String> {
        writeln!(self.process.stdin.take().unwrap()).unwrap();
        let said = self.lines.by_ref().map(Result::unwrap).collect();
        assert!(self.process.wait().unwrap().success());
        said
    }
}

impl Drop for Customer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Three processes buy a piece each. The first is stopped after it has read the stock, until the others have bought. Returns
/// what it said in the end, and how many pieces are left.
async fn three_buy(address: &str, sale: &'static str) -> (Vec<String>, i64) {
    open(address).await.unwrap();
    let first = Customer::start(address, sale);
    first.signal("-STOP");
    for _ in 0..2 {
        let address = address.to_owned();
        let other = move || Customer::start(&address, sale).buy();
        let said = tokio::task::spawn_blocking(other).await.unwrap();
        assert!(said.last().unwrap().starts_with("> bought"), "{said:?}");
    }
    first.signal("-CONT");
    let said = tokio::task::spawn_blocking(|| first.buy()).await.unwrap();
    let row = connect(address).await.unwrap();
    let row = row
        .query_one("SELECT pieces FROM stock", &[])
        .await
        .unwrap();
    (said, row.get(0))
}

pub(crate) async fn a_holder_that_was_stopped_cannot_commit(server: Postgres) {
    let (said, left) = three_buy(&server.address(), "checked").await;
    let refused = "> stock/7 is not held any more: nothing was written, and the sale begins again";
    assert_eq!(said.first().map(String::as_str), Some(refused), "{said:?}");
    assert_eq!(left, PIECES - 3, "{said:?}");
}

/// The test of the test: what a lock alone does not prevent.
pub(crate) async fn without_the_check_a_piece_is_sold_twice(server: Postgres) {
    let (said, left) = three_buy(&server.address(), "unchecked").await;
    assert_eq!(left, PIECES - 1, "{said:?}");
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
    let row = client
        .query_one("SELECT pieces FROM stock", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), PIECES);
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
    let row = client
        .query_one("SELECT pieces FROM stock", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), PIECES - 1);
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
