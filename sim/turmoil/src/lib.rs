//! Quorlock in your [turmoil](https://docs.rs/turmoil) test: the production client, unchanged, over the network and in the time of a
//! simulation.
//!
//! [`builder`] returns a [`LocksBuilder`] whose locks connect through turmoil's sockets, take the time from turmoil, and draw their
//! random numbers from a seed. The server is [`redis_sim::turmoil::Redis`](https://docs.rs/redis-sim), a host of the same simulation:
//!
//! ```
//! use redis_sim::turmoil::Redis;
//!
//! let mut sim = turmoil::Builder::new().rng_seed(7).build();
//! sim.host("redis", Redis::new(7).software());
//! let locks = quorlock_turmoil::builder(7);
//! sim.client("worker", async move {
//!     let locks = locks.connect("redis://redis/").await?;
//!     let guard = locks.lock("orders/42").acquire().await?;
//!     guard.release().await?;
//!     Ok(())
//! });
//! sim.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The guide "Quorlock in your turmoil test" of the book shows a service with HTTP and SQL.

mod network;
mod runtime;

use std::sync::Arc;

use quorlock::redis::RedisConfig;
use quorlock::{Locks, LocksBuilder};

pub use network::TurmoilNetwork;
pub use runtime::TurmoilRuntime;

/// Returns the settings of locks on a host of a simulation: [`TurmoilNetwork`] and [`TurmoilRuntime`], all else as by default.
///
/// Clone it for each client, and for each start of a host. All clones draw from one stream of random numbers, so each client has an
/// identity of its own. Take the seed of the simulation.
///
/// [`LocksBuilder::redis`] replaces the network: pass it `RedisConfig::default().network(TurmoilNetwork)` with your settings.
pub fn builder(seed: u64) -> LocksBuilder {
    Locks::builder()
        .redis(RedisConfig::default().network(TurmoilNetwork))
        .runtime(Arc::new(TurmoilRuntime::new(seed)))
}
