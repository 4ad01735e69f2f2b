//! A service that moves money between accounts: a lock over both of them, and SQL that refuses a late write.
//!
//! Two requests for one account wait for each other, also in two processes of the service. A process that pauses in the
//! middle of a transfer for longer than its lease changes nothing afterwards: each transaction begins with the fencing
//! tokens of its hold, and is rolled back if there was a later hold.
//!
//! ```sh
//! cargo run -p quorlock-tests --example transfers -- redis://127.0.0.1:6379
//! curl -i localhost:8080/transfers -H 'content-type: application/json' -d '{"from":"alice","to":"bob","amount":30}'
//! ```
#![allow(
    clippy::disallowed_methods,
    reason = "an example is a program of its own"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use quorlock::{AcquireError, EmbeddedNode, Guard, Locks};
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params, params};
use serde::{Deserialize, Serialize};

/// How long a request waits for the accounts.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state that every request needs.
#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub(crate) locks: Locks,
    /// A SQLite file. A service on several hosts would use a database server instead.
    pub(crate) database: PathBuf,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) amount: i64,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Balances {
    pub(crate) from: i64,
    pub(crate) to: i64,
}

/// Why a transfer was not made.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Other holders have one of the accounts, or no majority of servers answers.
    Busy(AcquireError),
    /// The lock was lost before the write, or there was a later hold. Nothing was written.
    TooLate,
    Uncovered,
    Malformed(&'static str),
    Database(rusqlite::Error),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, text) = match self {
            Refusal::Busy(error) => {
                // The text names the servers: it is for the log.
                eprintln!("{error}");
                let status = StatusCode::from_u16(error.kind().to_http_status());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let retry = [(header::RETRY_AFTER, "1")];
                return (status, retry, "not now: try again\n").into_response();
            }
            Refusal::TooLate => (StatusCode::CONFLICT, "too late: try again".to_owned()),
            Refusal::Uncovered => (StatusCode::CONFLICT, "not enough money".to_owned()),
            Refusal::Malformed(text) => (StatusCode::BAD_REQUEST, text.to_owned()),
            Refusal::Database(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
        (status, format!("{text}\n")).into_response()
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Refusal::Database(error)
    }
}

pub(crate) fn service(bank: Bank) -> Router {
    Router::new()
        .route("/transfers", post(transfer))
        .with_state(bank)
}

async fn transfer(
    State(bank): State<Bank>,
    Json(transfer): Json<Transfer>,
) -> Result<Json<Balances>, Refusal> {
    if transfer.amount <= 0 || transfer.from == transfer.to {
        return Err(Refusal::Malformed(
            "a positive amount, between two accounts",
        ));
    }
    // Both names are acquired, or none, so that a transfer in the other direction cannot block this one forever.
    let both = bank.locks.all([&transfer.from, &transfer.to]);
    let guard = both.wait(PATIENCE).acquire().await;
    let guard = guard.map_err(|error| match error {
        AcquireError::Config(_) => Refusal::Malformed("no names of accounts"),
        error => Refusal::Busy(error),
    })?;
    let fence = Fence::of(&guard);
    let work = async {
        let before = balances(&bank.database, &fence, &transfer).await?;
        let after = decide(&transfer, &before).await?;
        write(&bank.database, &fence, &transfer, &after).await?;
        Ok(Json(after))
    };
    // The work is dropped when the lock is lost. A statement in progress is then refused because of its token.
    guard
        .while_held(async |_| work.await)
        .await
        .map_or(Err(Refusal::TooLate), |done| done.output)
}

/// A real service would query other services here, and take its time.
async fn decide(transfer: &Transfer, before: &Balances) -> Result<Balances, Refusal> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    if before.from < transfer.amount {
        return Err(Refusal::Uncovered);
    }
    Ok(Balances {
        from: before.from - transfer.amount,
        to: before.to + transfer.amount,
    })
}

/// The names of a hold, each with its token.
#[derive(Clone, Debug)]
pub(crate) struct Fence(pub(crate) Vec<(String, i64)>);

impl Fence {
    fn of(guard: &Guard) -> Self {
        let tokens = guard.names().map(|name| {
            let name = name.to_string();
            let token = guard.fencing_token_of(&name).map_or(0, |token| token.0);
            // Tokens are below 2^53.
            (name, i64::try_from(token).unwrap_or(0))
        });
        Fence(tokens.collect())
    }

    /// Begins a transaction of this hold.
    fn begin<'a>(&self, database: &'a mut Connection) -> Result<Transaction<'a>, Refusal> {
        let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (name, token) in &self.0 {
            let raised = transaction.execute(
                "INSERT INTO fence (name, token) VALUES ($1, $2)
                 ON CONFLICT (name) DO UPDATE SET token = excluded.token
                 WHERE fence.token <= excluded.token",
                named_params! {"$1": name, "$2": token},
            )?;
            if raised == 0 {
                // The drop of the transaction rolls it back.
                return Err(Refusal::TooLate);
            }
        }
        Ok(transaction)
    }
}

/// A read raises the tokens, too. Otherwise an older hold could still write what this one has not seen.
async fn balances(
    database: &Path,
    fence: &Fence,
    transfer: &Transfer,
) -> Result<Balances, Refusal> {
    let (fence, transfer) = (fence.clone(), transfer.clone());
    in_background(database, move |database| {
        let transaction = fence.begin(database)?;
        let balance = |account: &str| {
            let sql = "SELECT balance FROM account WHERE name = ?1";
            transaction.query_row(sql, [account], |row| row.get(0))
        };
        let balances = Balances {
            from: balance(&transfer.from)?,
            to: balance(&transfer.to)?,
        };
        transaction.commit()?;
        Ok(balances)
    })
    .await
}

/// Writes the decided balances.
pub(crate) async fn write(
    database: &Path,
    fence: &Fence,
    transfer: &Transfer,
    after: &Balances,
) -> Result<(), Refusal> {
    let (fence, transfer, after) = (fence.clone(), transfer.clone(), after.clone());
    in_background(database, move |database| {
        let transaction = fence.begin(database)?;
        for (account, balance) in [(&transfer.from, after.from), (&transfer.to, after.to)] {
            let sql = "UPDATE account SET balance = ?2 WHERE name = ?1";
            transaction.execute(sql, params![account, balance])?;
        }
        Ok(transaction.commit()?)
    })
    .await
}

/// Runs a query on a thread for blocking work, since SQLite blocks its thread.
async fn in_background<T: Send + 'static>(
    database: &Path,
    work: impl FnOnce(&mut Connection) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let database = database.to_owned();
    let done = tokio::task::spawn_blocking(move || work(&mut open(&database)?));
    done.await.expect("the work does not panic")
}

pub(crate) fn open(database: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(database)?;
    database.busy_timeout(Duration::from_secs(10))?;
    Ok(database)
}

/// Creates the tables, and accounts with 100 each.
pub(crate) fn create(database: &Path, accounts: &[&str]) -> rusqlite::Result<()> {
    let database = open(database)?;
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL);
         CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance BIGINT NOT NULL);",
    )?;
    for account in accounts {
        let sql = "INSERT INTO account VALUES (?1, 100) ON CONFLICT DO NOTHING";
        database.execute(sql, [account])?;
    }
    Ok(())
}

#[allow(dead_code, reason = "a test takes the rest as a module")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let servers: Vec<String> = std::env::args().skip(1).collect();
    let locks = if servers.is_empty() {
        println!("no server was given: a node inside this process");
        Locks::on_node(EmbeddedNode::new())?
    } else {
        Locks::quorum(&servers).await?
    };
    let database = std::env::temp_dir().join("quorlock-transfers.sqlite");
    create(&database, &["alice", "bob", "carol"])?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/transfers", listener.local_addr()?);
    axum::serve(listener, service(Bank { locks, database })).await?;
    Ok(())
}
