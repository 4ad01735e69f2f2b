//! Clients of the product on real servers, and the keys under a name.

use std::time::{Duration, Instant};

use quorlock::redis::RedisConfig;
use quorlock::{Guard, Lock, Locks, LocksBuilder, RetryPolicy};
use quorlock_testbed::server::Server;
use quorlock_testbed::wait::{BOUND, until};
use tokio::task::JoinHandle;

/// The bound on a call. It is generous because the machine may be busy.
const CALL: Duration = Duration::from_secs(1);

/// Returns settings with which failed connections are detected quickly.
#[must_use]
pub fn hasty() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(CALL)
        .call_timeout(CALL)
        .ping_interval(Duration::from_millis(200))
}

/// Returns the settings of the tests, with which failures are detected quickly.
pub fn settings() -> LocksBuilder {
    let settings = Locks::builder().redis(hasty()).member_timeout(CALL / 2);
    settings.trust_fresh_nodes()
}

/// Returns a client whose pauses double without a bound, so that in practice only a server that can be reached again ends
/// them.
///
/// # Panics
/// Panics if the server, the group or the cluster cannot be used.
pub async fn patient_client(address: &str) -> Locks {
    let hour = Duration::from_secs(3600);
    let retry = RetryPolicy::default().backoff_cap(hour);
    let settings = settings().retry(retry.without_quorum(hour));
    let connected = settings.connect(address).await;
    connected.expect("the server can be used")
}

/// Spawns a waiter with a generous bound. It returns the guard and the time of the grant.
pub fn waiter(lock: &Lock) -> JoinHandle<(Guard, Instant)> {
    let lock = lock.clone().wait(4 * BOUND);
    tokio::spawn(async move {
        loop {
            // A client gives up if there is no primary for too long. The test waits longer.
            if let Ok(guard) = lock.acquire().await {
                return (guard, Instant::now());
            }
        }
    })
}

/// Releases the lock. Returns the guard of the waiter behind it, and the time from the release to its grant.
///
/// # Panics
/// Panics if the release fails, or the waiter's token is not larger.
pub async fn hand_over(guard: Guard, behind: JoinHandle<(Guard, Instant)>) -> (Guard, Duration) {
    let token = guard.fencing_token();
    let released = Instant::now();
    guard.release().await.expect("it is held");
    let (next, served) = behind.await.expect("the waiter does not panic");
    assert!(token < next.fencing_token());
    let span = served.saturating_duration_since(released);
    println!("released; the next one served {span:?} after that");
    (next, span)
}

/// Returns a client of the server at this address.
///
/// # Panics
/// Panics if the server cannot be used.
pub async fn client(address: &str) -> Locks {
    let connected = settings().connect(address).await;
    connected.expect("the server can be used")
}

/// Returns a client of this server.
///
/// # Panics
/// Panics if the server cannot be used.
pub async fn locks_on(server: &Server) -> Locks {
    client(&server.address()).await
}

/// Returns a client of a majority of these servers.
///
/// # Panics
/// Panics if too few of them can be used.
pub async fn quorum_of(servers: &[Server]) -> Locks {
    let connected = settings().quorum(servers.iter().map(Server::address)).await;
    connected.expect("the servers can be used")
}

/// Acquires a lock, and tries again while too few servers answer. A client takes a moment to find a server that has
/// returned.
///
/// # Panics
/// Panics if the lock is not granted within [`BOUND`].
pub async fn acquire_at_last(lock: &Lock) -> Guard {
    let start = Instant::now();
    let lock = lock.clone().wait(BOUND);
    loop {
        match lock.acquire().await {
            Ok(guard) => return guard,
            Err(error) => assert!(start.elapsed() < BOUND, "still: {error}"),
        }
    }
}

/// Returns the owner and the count under a name. Returns `None` if the name is free, or the server does not answer.
#[must_use]
pub fn claim_of(server: &Server, name: &str) -> Option<(String, u32)> {
    let fields: Vec<(String, String)> = server.try_command(&["HGETALL", name]).ok()?;
    let (owner, value) = fields.into_iter().next()?;
    // With a margin, the claim version is behind the count.
    let count = value.split(' ').next()?;
    Some((owner, count.parse().expect("a count")))
}

/// Returns whether the claim under the name is this guard's.
#[must_use]
pub fn is_claimed_by(server: &Server, name: &str, guard: &Guard) -> bool {
    claim_of(server, name).is_some_and(|(owner, _)| owner == guard.owner_id().to_string())
}

/// Returns whether a marker shows that the server's current process was watched for long enough.
#[must_use]
pub fn marks_itself(server: &Server, marker: &str) -> bool {
    let ask = |words: &[&str]| server.try_command::<Option<String>>(words).ok().flatten();
    let marker = ask(&["GET", marker]).unwrap_or_default();
    let process = ask(&["INFO", "replication"]).unwrap_or_default();
    let own = marker.get(..13).unwrap_or("none");
    process.contains(&format!("master_replid:{own}")) && marker.ends_with(":ripe")
}

/// Waits until the hold is renewed, which shows as a growing validity.
///
/// # Panics
/// Panics if that does not happen within [`BOUND`], or the hold is lost.
pub async fn until_renewed(guard: &Guard) {
    let mut least = guard.validity();
    until("it is renewed", || {
        let left = guard.validity();
        let has_grown = least < left;
        least = least.min(left);
        has_grown
    })
    .await;
    assert!(guard.is_held());
}
