//! The adapter to a Redis server: carries the requests of a lock to it, and its wake-ups back.
//!
//! [`RedisTransport`] implements [`Transport`](quorlock_core::transport::Transport). It knows nothing of quorums,
//! leases and waiting: it sends one request at most once, says what came of it, and tells listeners what the server
//! publishes.
//!
//! | module | subject |
//! |---|---|
//! | `transport` | one call from its request to its reply |
//! | `check`, `info`, `doubt` | whether a server will do, by what it says of itself, and what is doubtful about it |
//! | `config`, `address` | what a user says |
//! | `connect` | how a stream of bytes comes about ([`Connect`]) |
//! | `route`, `cluster`, `keyslot`, `tag` | which server a request goes to: the one there is, the node of a cluster that owns the slot of its name, or of the tag of a member |
//! | `server` | one server: a connection for requests, and one for wake-ups |
//! | `source`, `group` | which server the next connection goes to: a fixed one, the primary of a Sentinel group |
//! | `security`, `tls` | whether a stream is encrypted, and how ([`Tls`], feature `tls`) |
//! | `credentials` | what to log in with, where that changes ([`Credentials`]) |
//! | `target`, `link`, `connection` | the command connection: what it leads to, one of them and its health, which one is current |
//! | `subscription` | the wake-up connection: who listens to what, and what is done about it |
//! | `script`, `key` | requests as script calls; the scripts are in `lua/` |
//! | `error` | what an error says about the execution of a request |
//! | `wait` | how far a write must have gone before it counts |
//! | `timer` | clock, waiting, spawning |
//!
//! # What the user needs on the server
//! Commands `EVALSHA`, `EVAL`, `PTTL`, `HMGET`, `HSET`, `PEXPIRE`, `GET`, `SET`, `DEL`, `TIME`, `PUBLISH`, `SUBSCRIBE`,
//! `UNSUBSCRIBE` and `PING` (also `SCRIPT LOAD` and `INFO`, which may be denied); the keys `<name>` and
//! `redisson_lock_token:*` and `redisson_lock_queue:*` (with `EXISTS`); the channels `redisson_lock__channel:*`. Who inspects and force-releases locks needs
//! `HLEN` and `HGETALL` besides, who has set a [`Wait`] `WAIT` or `WAITAOF`, who has a Sentinel group `ROLE`
//! (believed where it is denied). On sentinels: `SENTINEL GET-MASTER-ADDR-BY-NAME`, `SENTINEL MASTER`,
//! `SENTINEL SENTINELS`, `SUBSCRIBE` and `PING`, the channels `+switch-master` and `+promoted-slave`; all but the first may be denied.
//! On the nodes of a cluster `CLUSTER SLOTS` and `ASKING` besides; `SSUBSCRIBE`, `SUNSUBSCRIBE` and `SPUBLISH` may be denied.

mod address;
mod check;
mod cluster;
mod config;
mod connect;
mod connection;
mod credentials;
mod doubt;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzed;
mod group;
mod info;
mod key;
mod keyslot;
mod link;
mod multiplexer;
mod resp;
mod route;
mod script;
mod security;
mod server;
mod source;
mod subscription;
mod sync;
mod tag;
mod target;
mod timer;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod wait;

pub use address::AddressError;
pub use check::{Backlog, Checked, ConnectError, RunId};
pub use config::RedisConfig;
pub use connect::{ByteStream, Connect, Connecting, Endpoint, Network};
pub use credentials::{Changing, Credentials, LoggingIn, Login, PasswordFile};
#[cfg(feature = "redis-credentials")]
pub use credentials::{RedisCredentialsProvider, StreamedCredentials};
pub use doubt::Doubt;
/// The client of the `redis` crate that [`RedisTransport::from_redis_client`] takes, in the version that it takes it in. A new
/// major version of that crate changes this type; nothing else of the crate is public here.
pub use redis::Client as RedisClient;
#[cfg(feature = "tls")]
pub use tls::Tls;
/// The configuration of the `rustls` crate that [`Tls::from_rustls`] takes, in the version that it takes it in.
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls::ClientConfig as RustlsClientConfig;
pub use transport::RedisTransport;
pub use wait::Wait;
