//! A server to connect to: where it is, how to get there, how to log in, how long to wait.

use std::fmt;

use quorlock_core::transport::TransportError;
use redis::RedisConnectionInfo;

use crate::address::Address;
use crate::config::RedisConfig;
use crate::connect::ByteStream;
use crate::security::Security;
use crate::timer::Instant;

/// What the command connection and the wake-up connection have in common.
pub(crate) struct Target {
    address: Address,
    security: Security,
    config: RedisConfig,
}

impl Target {
    pub(crate) fn new(address: Address, config: RedisConfig) -> Self {
        let security = config.security(address.scheme);
        Target {
            address,
            security,
            config,
        }
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

    /// A fresh stream to the server, encrypted if its address says so. The caller bounds it by the deadline.
    pub(crate) async fn stream(
        &self,
        deadline: Instant,
    ) -> Result<Box<dyn ByteStream>, TransportError> {
        let network = self.config.network.as_ref();
        let endpoint = &self.address.endpoint;
        self.security.stream(network, endpoint, deadline).await
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}
