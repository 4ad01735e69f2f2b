//! Distributed locks on Redis: on one node, on a majority of nodes, or over several names at once.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quorlock::{EmbeddedNode, Locks};
//!
//! // With a server: Locks::connect("redis://127.0.0.1/").await?, or Locks::quorum([a, b, c]).await? for RedLock, where
//! // new servers grant their first lock after a minute.
//! let locks = Locks::on_node(EmbeddedNode::new())?;
//!
//! let guard = locks.lock("orders/42").acquire().await?;
//! let token = guard.fencing_token(); // a store that compares tokens rejects a stale holder
//! guard.release().await?;            // dropping the guard releases too, without a report
//! # let _ = token;
//! # Ok(())
//! # }
//! ```
//!
//! **The book** is the folder `docs/src` of the repository. `tutorial/first-lock.md` begins with a first lock,
//! `deployments.md` helps to choose the servers, `safety.md` has each property with its assumptions, and `operating.md`
//! is for production.
//!
//! **What is promised.** While a guard reports that it is held, no other client holds the lock. This needs clocks
//! whose rates differ by less than 1 %. On a single node it also needs a node that keeps its data and whose clock is
//! not stepped. A majority of nodes tolerates nodes that restart without their data, and clock steps within the
//! [margin](LocksBuilder::clock_margin). A guard stops reporting that it is held before a node grants the lock to
//! another client, and [`Guard::while_held`] cancels work at that moment.
//!
//! **What is not promised.** A process that is suspended in the middle of a write does not notice that its lease has
//! expired. Only a resource that compares [fencing tokens](Guard::fencing_token) rejects that write. Asynchronous
//! replication, a single node that restarts without its data, and a single node whose clock is stepped can each give
//! one lock to two holders.
//!
//! | topic | see |
//! |---|---|
//! | connecting, configuring | [`Locks`], [`LocksBuilder`] |
//! | acquiring | [`Lock`], [`Owner`] |
//! | up to N holders at once | [`Semaphore`] |
//! | holding, losing, releasing | [`Guard`], [`LostSignal`], [`ValidityWatch`] |
//! | electing a leader, observing it | [`Candidate`], [`Candidacy`], [`LeaderObserver`] |
//! | errors | [`AcquireError`], [`ReleaseError`], [`ConfirmError`], [`Lost`], the module [`errors`] |
//! | finding the holder, releasing by force | [`Locks::inspect`], [`Locks::force_release`], the module [`operate`] |
//! | observability | `tracing` events of the target `quorlock`; with the feature `metrics`, the module `metrics` |
//! | code without `async` | the module [`blocking`] |
//! | trying it without a server | [`EmbeddedNode`] |
//! | time-outs, TLS, credentials, a tunnel or a proxy | `LocksBuilder::redis`, the module `redis` |
//! | a custom transport, or a change to one | the module [`transport`], [`Locks::on_node`], [`Locks::on_nodes`] |
//! | a store of your own, with conditional writes | the crate `quorlock-store`: a `StoreTransport` over your `Store` |
//! | running it in a simulator | [`Runtime`](runtime::Runtime), [`Transport`](transport::Transport) |
//!
//! | cargo feature | what it adds |
//! |---|---|
//! | `redis` (default) | locks on real servers; without it, there are only the in-memory node and custom transports |
//! | `tracing` (default) | `tracing` events |
//! | `tls` | addresses that begin with `rediss://` |
//! | `redis-connections` | locks over clients and connections of the `redis` crate that a program has already |
//! | `redis-credentials` | logins from a provider of the `redis` crate |
//! | `postgres`, `mysql`, `sqlite` | locks in a table of PostgreSQL, of MySQL or MariaDB, or in a file of SQLite |
//! | `etcd` | locks in keys of etcd; compiled with `protoc`, which must be installed |
//! | `zookeeper` | locks in znodes of ZooKeeper |
//! | `mongodb` | locks in documents of MongoDB |
//! | `s3` | locks in objects of S3, or of a service like it |
//! | `metrics` | counters and histograms |

// The public face: how locks are made, acquired and held.
pub mod blocking;
mod builder;
#[cfg(any(feature = "redis", feature = "store"))]
mod connect;
mod guard;
mod leader;
mod lock;
mod locks;
pub mod operate;
mod owner;
mod semaphore;
mod ticket;

// The operations, and the state that the locks of one client share.
mod operation;
mod shared;

// The foundation, which depends on nothing above.
mod config;
mod embedded;
mod error;
#[cfg(feature = "metrics")]
pub mod metrics;
mod mutex;
pub mod runtime;
mod sync;
mod telemetry;

pub use builder::LocksBuilder;
pub use embedded::{EmbeddedNode, Persistence};
pub use error::{AcquireError, ConfigError, ConfirmError, ConnectError, ErrorKind, ReleaseError};
pub use guard::{Finished, Guard, LostSignal, ValidityWatch};
pub use leader::{Candidacy, Candidate, LeaderEvent, LeaderObserver, LeaderView, Leadership};
pub use lock::Lock;
pub use locks::Locks;
pub use owner::Owner;
pub use quorlock_core::acquisition::RetryPolicy;
pub use quorlock_core::fencing::Token;
pub use quorlock_core::message::Mode;
pub use quorlock_core::name::{Name, NameError};
pub use quorlock_core::owner::OwnerId;
pub use quorlock_core::renewal::Lost;
pub use quorlock_core::trust::Why;
pub use semaphore::Semaphore;
pub use shared::trust::NodeTrust;
pub use ticket::Ticket;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// What errors consist of: the nodes that failed and why, whose setting a lease is, and who holds a lock.
pub mod errors {
    pub use crate::error::{
        HandOverError, HandOverProblem, Holder, LeaseSource, NodeProblem, NodeReport, Quarantine,
        TicketError,
    };
}

/// Connections to Redis: addresses, time-outs, TLS, credentials, and how far a write must be replicated.
///
/// [`LocksBuilder::redis`] takes the [`RedisConfig`](redis::RedisConfig). [`RedisTransport`](redis::RedisTransport) is
/// the transport that the constructors of [`Locks`] make from an address.
#[cfg(feature = "redis")]
pub mod redis {
    pub use quorlock_redis::{
        AddressError, AddressProblem, Backlog, ByteStream, Changing, Checked, Connect,
        ConnectError as NodeConnectError, Connecting, Credentials, Doubt, Endpoint, LoggingIn,
        Login, Network, PasswordFile, RedisConfig, RedisTransport, RunId, Wait,
    };
    #[cfg(feature = "redis-connections")]
    pub use quorlock_redis::{ConnectionLike, RedisClient, SharedConnection};
    #[cfg(feature = "redis-credentials")]
    pub use quorlock_redis::{RedisCredentialsProvider, StreamedCredentials};
    #[cfg(feature = "tls")]
    pub use quorlock_redis::{RustlsClientConfig, Tls};
}

/// The interface between locks and nodes, for custom transports.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// use quorlock::transport::{Intercept, Transport as _};
/// use quorlock::{EmbeddedNode, Locks};
///
/// // A transport that counts requests, over another one.
/// let sent = Arc::new(AtomicU32::new(0));
/// let counter = sent.clone();
/// let node = Intercept::new(EmbeddedNode::new()).on_call(move |node, request| {
///     counter.fetch_add(1, Ordering::Relaxed);
///     node.call(request)
/// });
/// let guard = Locks::on_node(node)?.lock("orders/42").acquire().await?;
/// guard.release().await?;
/// assert_eq!(sent.load(Ordering::Relaxed), 2); // an acquire and a release
/// # Ok(())
/// # }
/// ```
///
/// A transport that changes what another one does, as [`Intercept`](transport::Intercept) does, needs nothing else. A
/// transport to another kind of store also constructs the parts of replies. They are in the modules `message`, `marker`
/// and `claim_version` of the crate `quorlock-core`, whose module `node` is the specification of what a node answers.
pub mod transport {
    pub use quorlock_core::intercept::Intercept;
    pub use quorlock_core::message::{
        Acquire, AcquireReply, Channel, Claim, ForceRelease, Freshness, Inspect, Release,
        ReleaseReply, Renew, RenewReply, Reply, Request, Wake,
    };
    pub use quorlock_core::slot::{ServerNumber, Slot, UnfitName};
    pub use quorlock_core::transport::{
        Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
    };
}
