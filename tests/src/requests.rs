//! Requests and replies in few words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorlock_core::fencing::{Fence, Token};
use quorlock_core::lease::Lease;
use quorlock_core::message::{
    Access, Acquire, AcquireReply, Claim, Freshness, Mode, Release, ReleaseReply, Renew,
    RenewReply, Reply, Request, Retention, Ttl,
};
use quorlock_core::name::Name;
use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::{WallMillis, millis_of};
use quorlock_core::transport::{Transport, TransportError};

/// The lease of these requests.
pub const LEASE: Duration = Duration::from_secs(30);

/// How long token counters are kept.
pub const RETENTION: Duration = Duration::from_secs(86_400);

/// The largest distance between the floor of a token and the clock of the node.
pub const SLACK: Duration = Duration::from_secs(15);

/// Returns a name.
///
/// # Panics
/// Panics if it is not a valid name.
#[must_use]
pub fn name(name: &str) -> Name {
    Name::new(name).expect("a well-formed name")
}

/// Returns the owner with this number. All of these owners belong to the same client.
#[must_use]
pub fn owner(number: u64) -> OwnerId {
    OwnerId {
        client: ClientId::from_random(7),
        number,
    }
}

/// Returns the wall clock of this machine, which is also that of its servers.
///
/// # Panics
/// Panics if the clock shows a time before 1970.
#[must_use]
pub fn wall_clock() -> WallMillis {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    WallMillis(millis_of(since_1970.expect("it is after 1970")))
}

/// Returns a request for a first hold of the name by the owner with this number, with a new token.
///
/// # Panics
/// Never panics.
#[must_use]
pub fn acquire(name: &Name, number: u64) -> Acquire {
    Acquire {
        name: name.clone(),
        access: Access::Plain,
        owner: owner(number),
        count: 1,
        lease: Lease::new(LEASE).expect("long enough"),
        fence: Fence::Mint {
            floor: wall_clock(),
            slack_millis: millis_of(SLACK),
        },
        retention: Retention::of(RETENTION),
        keep: None,
        after: None,
        replaces: None,
        continues: None,
        check: None,
    }
}

/// Returns a claim to renew: the owner with this number still holds the name.
///
/// # Panics
/// Never panics.
#[must_use]
pub fn claim(name: &Name, number: u64, token: Token) -> Claim {
    Claim {
        name: name.clone(),
        owner: owner(number),
        count: 1,
        lease: Lease::new(LEASE).expect("long enough"),
        token,
        keep: None,
    }
}

/// Sends an acquire.
///
/// # Errors
/// Returns the errors of the call.
///
/// # Panics
/// Panics if the reply does not match the request.
pub async fn ask(
    transport: &impl Transport,
    request: Acquire,
) -> Result<AcquireReply, TransportError> {
    match transport.call(Request::Acquire(request)).await? {
        Reply::Acquire(reply) => Ok(reply),
        other => panic!("an answer to another request: {other:?}"),
    }
}

/// Renews claims.
///
/// # Errors
/// Returns the errors of the call.
///
/// # Panics
/// Panics if the reply does not match the request.
pub async fn renew(
    transport: &impl Transport,
    claims: Vec<Claim>,
) -> Result<Vec<RenewReply>, TransportError> {
    let retention = Retention::of(RETENTION);
    let request = Request::Renew(Renew {
        mode: Mode::Plain,
        claims,
        retention,
    });
    match transport.call(request).await? {
        Reply::Renew(replies) => Ok(replies),
        other => panic!("an answer to another request: {other:?}"),
    }
}

/// Sets the hold count of the name to `count`; 0 releases it.
///
/// # Errors
/// Returns the errors of the call.
///
/// # Panics
/// Panics if the reply does not match the request.
pub async fn release(
    transport: &impl Transport,
    name: &Name,
    number: u64,
    count: u32,
) -> Result<ReleaseReply, TransportError> {
    let request = Request::Release(Release {
        name: name.clone(),
        mode: Mode::Plain,
        owner: owner(number),
        count,
    });
    match transport.call(request).await? {
        Reply::Release(reply) => Ok(reply),
        other => panic!("an answer to another request: {other:?}"),
    }
}

/// Acquires the name, which must be free.
///
/// # Panics
/// Panics if the name is held.
pub async fn take(transport: &impl Transport, name: &Name, number: u64) -> Token {
    match ask(transport, acquire(name, number)).await {
        Ok(AcquireReply::Granted {
            freshness: Freshness::Anew,
            token,
        }) => token,
        other => panic!("the name must be free: {other:?}"),
    }
}

/// Returns the TTL with which a request for the name is refused. Another owner must hold the name.
///
/// # Panics
/// Panics if the name is free.
pub async fn refusal(transport: &impl Transport, name: &Name, number: u64) -> Ttl {
    match ask(transport, acquire(name, number)).await {
        Ok(AcquireReply::Refused { ttl, .. }) => ttl,
        other => panic!("another owner must hold the name: {other:?}"),
    }
}
