//! Real servers for tests, storms and benchmarks: processes on free ports of the loopback interface, which end with the
//! process that has started them, in whatever way that ends.
//!
//! Methods whose name begins with `try_` return an error where the others panic. All methods block the calling thread
//! until what they wait for has happened; an async caller that does other work on the same thread runs them on another
//! one.
//!
//! | to read | see |
//! |---|---|
//! | a process that ends with this one | [`guardian`] |
//! | a `redis-server` | [`server`] |
//! | a PostgreSQL server | [`postgres`] |
//! | a MariaDB server | [`mysql`] |
//! | an etcd cluster | [`etcd`], one of [`members`] |
//! | a server that speaks the protocol of S3 | [`s3`] |
//! | a server that speaks the protocol of MongoDB | [`mongodb`] |
//! | a ZooKeeper ensemble | [`zookeeper`], one of [`members`] |
//! | a Sentinel group of Redis servers | [`sentinels`] |
//! | a Redis Cluster of such servers | [`cluster`] |
//! | a network that delays, loses and cuts | [`proxy`] |
//! | a network whose messages take their time exactly, for benchmarks | [`relay`] |
//! | waiting for a condition, within a bound | [`wait`] |
//! | tests that are ignored, with a reason, where there is no server | `trials` |
//! | certificates, and an authority that signs them | `certificates` |
//! | the files below a folder, and the pages of the book | [`files`] |

#[cfg(feature = "harness")]
pub mod certificates;
pub mod cluster;
pub mod etcd;
pub mod files;
pub mod guardian;
pub mod lone;
pub mod members;
pub mod mongodb;
pub mod mysql;
mod port;
pub mod postgres;
pub mod proxy;
pub mod relay;
mod run;
pub mod s3;
pub mod sentinels;
pub mod server;
#[cfg(feature = "harness")]
pub mod trials;
pub mod wait;
pub mod zookeeper;
