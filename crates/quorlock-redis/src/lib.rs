//! The adapter to a Redis server.

mod transport;

pub use transport::{AddressError, RedisConfig, RedisTransport};
