//! The example of the page "Lock behind Sentinel", word for word. A test runs it on a Sentinel group.

use std::error::Error;
use std::time::Duration;

use quorlock::Locks;
use quorlock::redis::{RedisConfig, Wait};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let address = address.unwrap_or("redis+sentinel://127.0.0.1:26379/mymaster".into());

    // A grant counts only when a replica also has it, so that a failover loses fewer locks.
    let redis = RedisConfig::default().wait(Wait::replicas(1, Duration::from_millis(100)));
    let locks = Locks::builder().redis(redis).connect(&address).await?;

    // The lease is renewed, and longer than a failover: a hold survives if its claim reached the new primary.
    let guard = locks
        .lock("orders/42")
        .watchdog_lease(Duration::from_secs(60))
        .acquire()
        .await?;
    // The store refuses writes with a smaller token, in case two clients hold the lock at once.
    println!("held, with token {}", guard.fencing_token());
    guard.release().await?;
    Ok(())
}
