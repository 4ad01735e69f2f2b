//! A server to connect to: where it is, how to get there, how to log in, how long to wait.

use std::fmt;

use quorlock_core::transport::TransportError;
use redis::RedisConnectionInfo;

use crate::address::Address;
use crate::config::RedisConfig;
use crate::connect::ByteStream;
use crate::error;

/// What the command connection and the wake-up connection have in common.
pub(crate) struct Target {
    address: Address,
    config: RedisConfig,
}

impl Target {
    pub(crate) fn new(address: Address, config: RedisConfig) -> Self {
        Target { address, config }
    }

    pub(crate) fn config(&self) -> &RedisConfig {
        &self.config
    }

    pub(crate) fn login(&self) -> &RedisConnectionInfo {
        &self.address.login
    }

    /// The address without credentials.
    pub(crate) fn shown(&self) -> &str {
        &self.address.shown
    }

    /// A fresh stream to the server.
    pub(crate) async fn stream(&self) -> Result<Box<dyn ByteStream>, TransportError> {
        self.config
            .network
            .connect(&self.address.endpoint)
            .await
            .map_err(|error| error::unreachable(error.to_string()))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}
