//! The example of the page "Which deployment promises what", word for word. A test runs it on a Sentinel group.

use std::error::Error;
use std::time::Duration;

use quorlock::Locks;
use quorlock::transport::{RedisConfig, Wait};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next();
    let address = address.unwrap_or("redis+sentinel://127.0.0.1:26379/mymaster".into());

    // A grant counts when a replica has it, too: that makes a lock that a failover loses rarer.
    let redis = RedisConfig::default().wait(Wait::replicas(1, Duration::from_millis(100)));
    let locks = Locks::builder().redis(redis).connect(&address).await?;

    // The lease is longer than a failover, so a hold whose claim reached the new primary lives on.
    let guard = locks
        .lock("orders/42")
        .lease(Duration::from_secs(60))
        .acquire()
        .await?;
    // The store refuses a smaller token: what two holders at once would write is told apart by it.
    println!("held, with token {}", guard.fencing_token());
    guard.release().await?;
    Ok(())
}
