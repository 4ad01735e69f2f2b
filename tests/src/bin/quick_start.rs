//! The quick start of the README, word for word. A test runs it with a server and without one.

use std::process::ExitCode;
use std::time::Duration;

use quorlock::Locks;

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("redis://127.0.0.1/".into());
    match work(&address).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    // One server. For RedLock: Locks::quorum(["redis://a/", "redis://b/", "redis://c/"]).await?
    // (new servers grant their first lock a minute after the first client has connected).
    let locks = Locks::connect(address).await?;

    // Wait for at most 3 s. The lock is renewed until the guard is released or dropped.
    let order = locks.lock("orders/42").wait(Duration::from_secs(3));
    let guard = order.acquire().await?;
    ship(42, guard.fencing_token().0).await;
    guard.release().await?; // an error says that the lock had been lost before

    // Work that is cancelled when the lock is lost.
    let guard = locks.lock("report").acquire().await?;
    let report = guard
        .while_held(async |guard| build_report(guard.fencing_token().0).await)
        .await?;
    println!("{}", report.output);

    // Others hold it: that is an answer, not an error.
    match locks.all(["orders/42", "stock/7"]).try_acquire().await? {
        Some(both) => {
            println!("the order and the stock are locked together");
            both.release().await?;
        }
        None => println!("others hold one of them"),
    }

    locks.close().await;
    Ok(())
}

/// The store takes the write only if it has seen no larger token.
async fn ship(order: u64, token: u64) {
    println!("order {order} is shipped, with token {token}");
}

async fn build_report(_token: u64) -> &'static str {
    "the report is built"
}
