//! Distributed locks on any store with conditional writes.
//!
//! A lock server applies a request to the state of one name, atomically. A store has no scripts, and needs none:
//! a client reads the record of the name, applies the request to it with the executable specification of a lock server
//! ([`quorlock_core::node`]), and writes the record back if it is unchanged. So everything that is built on a
//! [`Transport`](quorlock_core::transport::Transport) works on a [`Store`]: majorities, several names, fair and read-write
//! locks, renewals, owners, fencing tokens, leader election.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quorlock::Locks;
//! use quorlock_store::{MemoryStore, StoreTransport};
//!
//! let locks = Locks::on_node(StoreTransport::new(MemoryStore::new()))?;
//! let guard = locks.lock("orders/42").acquire().await?;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`conformance::check`] tests a store of your own. The page `docs/src/stores.md` of the repository says what a store
//! promises, and `docs/src/records.md` what is in a record.

// The transport over a store, and how it executes one request.
mod execute;
mod transport;
mod watch;

// One record: its requests, its messages, and what is known of it.
mod desk;
mod hub;
mod remembered;
mod service;
mod view;

// Stores by their addresses, and the test of a store.
pub mod conformance;
#[cfg(feature = "etcd")]
mod etcd;
mod memory;
#[cfg(feature = "mongodb")]
mod mongodb;
#[cfg(feature = "mysql")]
mod mysql;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "zookeeper")]
mod zookeeper;

// What databases have in common.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod cluster;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod columns;
#[cfg(any(
    feature = "etcd",
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "s3",
    feature = "zookeeper"
))]
mod database;
#[cfg(any(
    feature = "etcd",
    feature = "mongodb",
    feature = "s3",
    feature = "zookeeper"
))]
mod host;
#[cfg(any(
    feature = "etcd",
    feature = "mongodb",
    feature = "mysql",
    feature = "postgres",
    feature = "s3",
    feature = "zookeeper"
))]
mod links;
#[cfg(any(feature = "mongodb", feature = "s3", feature = "zookeeper"))]
mod numbered;

// What a store is and how it is named, and what the transport needs beside it.
mod address;
mod check_in;
mod runtime;
mod store;
mod sync;

pub use address::AddressError;
pub use check_in::{CheckIn, CheckInError, Claims};
#[cfg(feature = "etcd")]
pub use etcd::EtcdStore;
pub use memory::MemoryStore;
#[cfg(feature = "mongodb")]
pub use mongodb::MongodbStore;
#[cfg(feature = "mysql")]
pub use mysql::MysqlStore;
pub use open::open;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use quorlock_core::marker::Process;
pub use quorlock_core::time::WallMillis;
pub use quorlock_core::transport::{Cause, Subscription, TransportError};
pub use runtime::{StoreRuntime, Task};
#[cfg(feature = "s3")]
pub use s3::S3Store;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use store::{
    Draft, Key, KeysCall, ReadCall, SetUpCall, Snapshot, Stamp, Store, Stored, SweepCall, Version,
    VersionCall, Watcher, WriteCall, Written,
};
pub use transport::StoreTransport;
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZookeeperStore;
