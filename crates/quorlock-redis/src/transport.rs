//! The way to one Redis server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::message::Request;
use quorlock_core::name::Name;
use quorlock_core::transport::{
    Call, Cause, Execution, Listener, Subscription, Transport, TransportError,
};

/// How a transport behaves.
#[derive(Clone, Debug)]
pub struct RedisConfig {
    /// Bounds a connection attempt.
    pub connect_timeout: Duration,
    /// Bounds a call.
    pub call_timeout: Duration,
}

impl Default for RedisConfig {
    fn default() -> Self {
        RedisConfig {
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_secs(2),
        }
    }
}

/// Why an address cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// It does not parse.
    Malformed,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the address of a Redis server: write redis://[user[:password]@]host[:port][/db]")
    }
}

impl std::error::Error for AddressError {}

/// A Redis server.
#[derive(Clone)]
pub struct RedisTransport {
    address: Arc<str>,
}

impl RedisTransport {
    /// Takes an address; makes no connection.
    ///
    /// # Errors
    /// [`AddressError`] when it does not parse.
    pub fn open(address: &str, _config: RedisConfig) -> Result<Self, AddressError> {
        Ok(RedisTransport {
            address: address.into(),
        })
    }
}

impl fmt::Debug for RedisTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisTransport")
    }
}

impl Transport for RedisTransport {
    fn call(&self, _request: Request) -> Call {
        Box::pin(async {
            Err(TransportError {
                execution: Execution::Definite,
                cause: Cause::Unreachable,
                detail: "not connected".into(),
            })
        })
    }

    fn subscribe(&self, _name: &Name, _listener: Arc<dyn Listener>) -> Subscription {
        Subscription::new(())
    }

    fn address(&self) -> &str {
        &self.address
    }
}
