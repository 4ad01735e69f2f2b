//! A shop whose stale write cannot commit: the lock and the stock are in one database.

use std::io::Write;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, TxOpts};
use quorlock::Locks;
use quorlock_store::CheckInError;

/// What the shop has at first.
pub(crate) const PIECES: i64 = 10;

/// Makes the tables of the shop and of the lock.
pub(crate) async fn open(address: &str) {
    Locks::init(address).await.unwrap();
    let stock = format!(
        "CREATE TABLE stock (item INT PRIMARY KEY, pieces BIGINT); INSERT INTO stock VALUES (7, {PIECES})"
    );
    connect(address).await.query_drop(stock).await.unwrap();
}

pub(crate) async fn connect(address: &str) -> Conn {
    Conn::from_url(format!("{address}?prefer_socket=false"))
        .await
        .unwrap()
}

pub(crate) async fn left(address: &str) -> i64 {
    let pieces = connect(address)
        .await
        .query_first("SELECT pieces FROM stock")
        .await;
    pieces.unwrap().unwrap()
}

/// Buys one piece, under the lock of the item.
pub(crate) async fn buy(address: &str, is_checked: bool) {
    // A short lease, so that a process that was stopped is soon replaced.
    let locks = Locks::builder().watchdog_lease(Duration::from_secs(3));
    let locks = locks.member_timeout(Duration::from_secs(1));
    let locks = locks.connect(address).await.unwrap();
    loop {
        let guard = locks.lock("stock/7").acquire().await.unwrap();
        let mut database = connect(address).await;
        let mut sale = database.start_transaction(TxOpts::new()).await.unwrap();
        let pieces = sale
            .query_first("SELECT pieces FROM stock WHERE item = 7")
            .await;
        let pieces: i64 = pieces.unwrap().unwrap();
        print!("{pieces} pieces are left: buy one? (Enter)\n> ");
        std::io::stdout().flush().unwrap();
        // Another thread renews the lease meanwhile, unless the process is stopped.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        let left = pieces - 1;
        let sql = "UPDATE stock SET pieces = ? WHERE item = 7";
        sale.exec_drop(sql, (left,)).await.unwrap();
        if is_checked {
            match guard.check_in(&mut sale).await {
                Ok(()) => {}
                Err(CheckInError::NotHeld { name }) => {
                    println!(
                        "{name} is not held any more: nothing was written, and the sale begins again"
                    );
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
        }
        sale.commit().await.unwrap();
        println!("bought: {left} pieces are left");
        // The commit counts, whatever has become of the hold since.
        let _ = guard.release().await;
        return;
    }
}
