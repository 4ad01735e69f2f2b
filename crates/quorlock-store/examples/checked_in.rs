//! A shop whose stale write cannot commit: the lock and the stock are in one database of PostgreSQL.
//!
//! Start it twice, with an address as its argument. Stop the first one when it asks (Ctrl-Z), and let the second one buy. When
//! the first one goes on, it finds that its hold is gone, and begins again. With `--unchecked` it does not find out, and a
//! piece is sold twice.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example is a program of its own: it spawns and prints"
)]

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use quorlock::Locks;
use quorlock_store::CheckInError;
use tokio_postgres::{Client, NoTls};

/// What the shop has at first.
pub(crate) const PIECES: i64 = 10;

/// Whether a sale checks its hold in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sale {
    Checked,
    Unchecked,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .ok_or("usage: checked_in postgres://user:password@host/database [--unchecked]")?;
    let sale = match arguments.next().as_deref() {
        Some("--unchecked") => Sale::Unchecked,
        _ => Sale::Checked,
    };
    open(&address).await?;
    buy(&address, sale).await
}

/// Makes the tables of the shop and of the lock.
pub(crate) async fn open(address: &str) -> Result<(), Box<dyn Error>> {
    Locks::init(address).await?;
    let stock = format!(
        "CREATE TABLE IF NOT EXISTS stock (item int PRIMARY KEY, pieces bigint);
         INSERT INTO stock VALUES (7, {PIECES}) ON CONFLICT DO NOTHING"
    );
    connect(address).await?.batch_execute(&stock).await?;
    Ok(())
}

pub(crate) async fn connect(address: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Buys one piece, under the lock of the item.
pub(crate) async fn buy(address: &str, sale: Sale) -> Result<(), Box<dyn Error>> {
    let mut database = connect(address).await?;
    // A short lease, so that a process that was stopped is soon replaced.
    let locks = Locks::builder().watchdog_lease(Duration::from_secs(3));
    let locks = locks
        .member_timeout(Duration::from_secs(1))
        .connect(address)
        .await?;
    loop {
        let guard = locks.lock("stock/7").acquire().await?;
        let mut transaction = database.transaction().await?;
        let row = transaction
            .query_one("SELECT pieces FROM stock WHERE item = 7", &[])
            .await?;
        let pieces: i64 = row.get(0);
        print!("{pieces} pieces are left: buy one? (Enter)\n> ");
        std::io::stdout().flush()?;
        // Another thread renews the lease meanwhile, unless the process is stopped.
        std::io::stdin().read_line(&mut String::new())?;
        let left = pieces - 1;
        transaction
            .execute("UPDATE stock SET pieces = $1 WHERE item = 7", &[&left])
            .await?;
        if sale == Sale::Checked {
            match guard.check_in(&mut transaction).await {
                Ok(()) => {}
                Err(CheckInError::NotHeld { name }) => {
                    println!(
                        "{name} is not held any more: nothing was written, and the sale begins again"
                    );
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
        }
        transaction.commit().await?;
        println!("bought: {left} pieces are left");
        // The commit counts, whatever has become of the hold since.
        let _ = guard.release().await;
        return Ok(());
    }
}
