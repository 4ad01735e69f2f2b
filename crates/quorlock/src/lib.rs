//! Distributed locks on Redis: one node, many locks, a majority of nodes.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quorlock::{EmbeddedNode, Locks};
//!
//! // With a server: Locks::connect("redis://127.0.0.1/").await?, or Locks::quorum([a, b, c]).await? for RedLock.
//! let locks = Locks::on_node(EmbeddedNode::new())?;
//!
//! let guard = locks.lock("orders/42").acquire().await?;
//! let token = guard.fencing_token(); // a store that compares it rejects a holder that comes late
//! guard.release().await?;            // dropping the guard releases too, without a report
//! # let _ = token;
//! # Ok(())
//! # }
//! ```
//!
//! **What is promised.** While a guard says that it is held, no other client holds the lock, as long as no clock runs at
//! a rate more than 1 % off and, on a single node, the node keeps its data and its clock is not stepped. On a majority
//! of nodes neither restarts without data nor steps of clocks within a margin break it. A guard stops saying so before
//! a node gives the lock to another client, and [`Guard::while_held`] cancels work at that moment.
//!
//! **What is not.** A process that is stopped in the middle of a write does not notice that its time is over. Only a
//! resource that compares [fencing tokens](Guard::fencing_token) stops that write. Asynchronous replication, a single
//! node that restarts without its data and one whose clock is stepped can each give one lock to two holders.
//!
//! | to read | see |
//! |---|---|
//! | connecting, configuring | [`Locks`], [`LocksBuilder`] |
//! | acquiring | [`Lock`], [`Owner`] |
//! | holding, losing, releasing | [`Guard`], [`LostSignal`] |
//! | leading, standing by, following who leads | [`Candidate`], [`Candidacy`], [`LeaderObserver`] |
//! | what can go wrong | [`AcquireError`], [`ReleaseError`], [`ConfirmError`], [`Lost`] |
//! | who holds it, and freeing it by force | [`Locks::inspect`], [`Locks::force_release`] |
//! | watching it run | `tracing` events of the target `quorlock`; with the feature `metrics`, the module `metrics` |
//! | trying it without a server | [`EmbeddedNode`] |
//! | reaching servers through a tunnel or a proxy | `LocksBuilder::redis` |
//! | running it in a simulator | [`Runtime`], [`Transport`](transport::Transport) |

// The face: how locks are made, acquired and held.
mod builder;
#[cfg(feature = "redis")]
mod connect;
mod guard;
mod leader;
mod lock;
mod locks;
mod operate;
mod owner;

// What runs below it.
mod operation;
mod shared;

// The ground.
mod config;
mod embedded;
mod error;
#[cfg(feature = "metrics")]
pub mod metrics;
mod mutex;
mod runtime;
mod sync;
mod telemetry;

pub use builder::LocksBuilder;
pub use embedded::{EmbeddedNode, Persistence};
pub use error::{
    AcquireError, ConfigError, ConfirmError, ConnectError, Holder, LeaseSource, NodeReport,
    Quarantine, ReleaseError,
};
pub use guard::{Finished, Guard, LostSignal};
pub use leader::{Candidacy, Candidate, LeaderEvent, LeaderObserver, LeaderView, Leadership};
pub use lock::Lock;
pub use locks::Locks;
pub use operate::{
    ForceReleaseError, ForceReleased, Inspection, NodeForceRelease, NodeInspection, Summary,
};
pub use owner::Owner;
pub use quorlock_core::acquisition::RetryPolicy;
pub use quorlock_core::fencing::Token;
pub use quorlock_core::message::{ForceReleaseReply, Found, InspectReply, Mode, Ttl};
pub use quorlock_core::name::{Name, NameError};
pub use quorlock_core::owner::OwnerId;
pub use quorlock_core::renewal::Lost;
pub use quorlock_core::time::{Time, WallMillis};
pub use quorlock_core::trust::Why;
pub use runtime::{Runtime, Task, Timer, TokioRuntime};
pub use shared::trust::NodeTrust;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The seam to a node: for transports of your own.
pub mod transport {
    pub use quorlock_core::claim_version::{ClaimVersion, ClockMargin};
    pub use quorlock_core::marker::{
        Act, Lineage, Marker, MarkerState, Nonce, Process, Restarts, Shown, ShownMarker,
    };
    pub use quorlock_core::message::{
        Access, Acquire, AcquireReply, Channel, Check, Claim, ForceRelease, ForceReleaseReply,
        Found, Freshness, Inspect, InspectReply, Mode, QueuePlace, Release, ReleaseReply, Renew,
        RenewReply, Reply, Request, Retention, Ttl, Wake,
    };
    pub use quorlock_core::node::{Applied, Held, Node, ReadWrite};
    pub use quorlock_core::slot::{Slot, UnfitName};
    pub use quorlock_core::transport::{
        Call, Cause, Execution, Listener, Subscription, Transport, TransportError, Witness,
    };
    #[cfg(feature = "redis")]
    pub use quorlock_redis::{
        AddressError, Backlog, ByteStream, Changing, Checked, Connect,
        ConnectError as NodeConnectError, Connecting, Credentials, Doubt, Endpoint, LoggingIn,
        Login, Network, PasswordFile, RedisClient, RedisConfig, RedisTransport, RunId, Wait,
    };
    #[cfg(feature = "redis-credentials")]
    pub use quorlock_redis::{RedisCredentialsProvider, StreamedCredentials};
    #[cfg(feature = "tls")]
    pub use quorlock_redis::{RustlsClientConfig, Tls};
}
