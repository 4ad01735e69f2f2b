//! Clients of the product on real servers, and what stands there under a name.

use std::time::{Duration, Instant};

use quorlock::transport::RedisConfig;
use quorlock::{Guard, Lock, Locks, LocksBuilder};

use crate::server::Server;
use crate::wait::{BOUND, until};

/// How long a call may take: the machine may be busy.
const CALL: Duration = Duration::from_secs(1);

/// The settings of the tests: what fails is found out soon.
pub fn settings() -> LocksBuilder {
    let redis = RedisConfig::default()
        .connect_timeout(CALL)
        .call_timeout(CALL)
        .ping_interval(Duration::from_millis(200));
    let settings = Locks::builder().redis(redis).member_timeout(CALL / 2);
    settings.trust_fresh_nodes()
}

/// A client of the server at this address.
///
/// # Panics
/// When the server cannot be used.
pub async fn client(address: &str) -> Locks {
    let connected = settings().connect(address).await;
    connected.expect("the server can be used")
}

/// A client of this server.
///
/// # Panics
/// When the server cannot be used.
pub async fn locks_on(server: &Server) -> Locks {
    client(&server.address()).await
}

/// A client of a majority of these servers.
///
/// # Panics
/// When too few of them can be used.
pub async fn quorum_of(servers: &[Server]) -> Locks {
    let connected = settings().quorum(servers.iter().map(Server::address)).await;
    connected.expect("the servers can be used")
}

/// Acquires, again and again while too few servers answer: it takes a client a moment to find one that has come back.
///
/// # Panics
/// When it has not got the lock after [`BOUND`].
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

/// The owner and the count that stand under a name; `None` when it is free, or the server does not answer.
#[must_use]
pub fn claim_of(server: &Server, name: &str) -> Option<(String, u32)> {
    let fields: Vec<(String, String)> = server.try_command(&["HGETALL", name]).ok()?;
    let mut owners = fields.into_iter().filter(|(field, _)| field != "beat");
    let (owner, count) = owners.next()?;
    Some((owner, count.parse().expect("a count")))
}

/// Whether the claim under the name is this guard's.
#[must_use]
pub fn is_claimed_by(server: &Server, name: &str, guard: &Guard) -> bool {
    claim_of(server, name).is_some_and(|(owner, _)| owner == guard.owner_id().to_string())
}

/// Waits until the hold is renewed: until what is left of it grows.
///
/// # Panics
/// When that does not come, or the hold is lost.
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
