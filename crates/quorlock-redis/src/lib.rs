//! The Redis adapter: carries requests for locks to a server, and wake-ups back.
//!
//! [`RedisTransport`] implements [`Transport`](quorlock_core::transport::Transport). It has no part in quorums,
//! leases and waiting: it sends one request at most once, reports its outcome, and notifies listeners of what the
//! server publishes.
//!
//! | module | subject |
//! |---|---|
//! | `transport` | one call, from its request to its reply |
//! | `check`, `info`, `doubt` | whether a server is suitable, according to itself, and what is doubtful about it |
//! | `config`, `address` | the user's settings |
//! | `connect` | how byte streams are made ([`Connect`]) |
//! | `route`, `cluster`, `keyslot`, `tag` | which server a request goes to: the only one, or the cluster node that owns the slot of its name or of the member's tag |
//! | `server` | one server: a connection for requests, and one for wake-ups |
//! | `source`, `group` | which server the next connection goes to: a fixed one, the primary of a Sentinel group |
//! | `scan` | the names that may be held, for operators |
//! | `examine` | what a server says about itself, its clock and its round trips, for operators |
//! | `security`, `tls` | whether a stream is encrypted, and how ([`Tls`], feature `tls`) |
//! | `credentials` | what to log in with, if it changes ([`Credentials`]) |
//! | `target`, `link`, `connection` | the command connection: where it leads, one of them and its health, which one is current |
//! | `subscription` | the wake-up connection: who listens to which channel, and the subscriptions on the server |
//! | `script`, `key` | requests as script calls; the scripts are in `lua/` |
//! | `rights` | what a lock needs of a server, and what a user lacks of it |
//! | `error`, `failure` | whether a request that failed may have been executed, and what its reader can do |
//! | `reserved`, `unfit` | names that cannot be locked, because their keys store something else or are in two slots |
//! | `wait` | how far a write must be replicated or persisted before it counts |
//! | `timer` | clock, sleeping, spawning |
//!
//! # Rights on the server
//! Commands: `EVALSHA`, `EVAL`, `PTTL`, `HMGET`, `HSET`, `PEXPIRE`, `GET`, `SET`, `DEL`, `TIME`, `PUBLISH`,
//! `SUBSCRIBE`, `UNSUBSCRIBE` and `PING`; also `SCRIPT LOAD`, `INFO` and `MGET`, which may be denied. Keys: `<name>`,
//! `redisson_lock_token:*` and `redisson_lock_queue:*` (with `EXISTS`). Channels: `redisson_lock__channel:*`.
//!
//! - Inspecting and force-releasing locks also needs `HLEN` and `HGETALL`; listing them needs `SCAN`. Examining a server
//!   uses `CONFIG GET` and `SLOWLOG GET`, which may be denied.
//! - A [`Wait`] needs `WAIT` or `WAITAOF`.
//! - A Sentinel group needs `ROLE` (if it is denied, the sentinels' word is trusted). On sentinels: `SENTINEL
//!   GET-MASTER-ADDR-BY-NAME`, `SENTINEL MASTER`, `SENTINEL SENTINELS`, `SUBSCRIBE` and `PING`, and the channels
//!   `+switch-master` and `+promoted-slave`; all but the first may be denied.
//! - The nodes of a cluster also need `CLUSTER SLOTS` and `ASKING`; `SSUBSCRIBE`, `SUNSUBSCRIBE` and `SPUBLISH` may
//!   be denied.

mod address;
mod check;
mod clients;
mod cluster;
mod config;
mod connect;
mod connection;
mod credentials;
mod doubtful_settings;
mod error;
mod examine;
mod failure;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzed;
mod group;
mod info;
mod key;
mod keyslot;
mod link;
mod multiplexer;
mod native;
mod reserved;
mod resp;
mod rights;
mod route;
mod scan;
mod script;
mod security;
mod server;
#[cfg(feature = "redis-connections")]
mod shared_connection;
mod source;
mod subscription;
mod sync;
mod tag;
mod target;
mod timer;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod unfit_names;
mod wait;

pub use address::{AddressError, AddressProblem};
pub use check::{Backlog, Checked, ConnectError, RunId};
pub use config::RedisConfig;
pub use connect::{ByteStream, Connect, Connecting, Endpoint, Network};
pub use credentials::{Changing, Credentials, LoggingIn, Login, PasswordFile};
#[cfg(feature = "redis-credentials")]
pub use credentials::{RedisCredentialsProvider, StreamedCredentials};
pub use doubtful_settings::Doubt;
#[doc(hidden)]
pub use examine::{ClockFacts, ExaminedServer, ServerFacts, SlowCommand};
pub use failure::advice;
/// The client of the `redis` crate that [`RedisTransport::from_redis_client`] takes. A new major version of that
/// crate changes this type.
#[cfg(feature = "redis-connections")]
pub use redis::Client as RedisClient;
/// The connections of the `redis` crate that [`SharedConnection`] takes. A new major version of that crate changes this trait.
#[cfg(feature = "redis-connections")]
pub use redis::aio::ConnectionLike;
#[doc(hidden)]
pub use rights::{RightsFacts, RightsTold};
#[doc(hidden)]
pub use scan::ScannedServer;
#[cfg(feature = "redis-connections")]
pub use shared_connection::SharedConnection;
#[doc(hidden)]
pub use source::SentinelFacts;
#[cfg(feature = "tls")]
pub use tls::Tls;
/// The configuration of the `rustls` crate that [`Tls::from_rustls`] takes. A new major version of that crate changes
/// this type.
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls::ClientConfig as RustlsClientConfig;
pub use transport::RedisTransport;
pub use wait::Wait;
