//! The transport to the server of a client of the `redis` crate.

use redis::ConnectionAddr;

use super::RedisTransport;
use crate::address::{Address, AddressError, AddressProblem};
use crate::config::RedisConfig;
use crate::target::Target;

impl RedisTransport {
    /// Creates a transport from the address and the credentials of a client of the `redis` crate. The client's
    /// connections and settings are not used. The certificates of a client that uses TLS are not used either,
    /// because they cannot be read from it: pass them to `RedisConfig::tls`.
    ///
    /// # Errors
    /// Those of [`RedisTransport::open`], and [`AddressProblem::TlsOfClient`] if the client has its own certificates or
    /// verifies none, and the configuration has no settings for TLS.
    pub fn from_redis_client(
        client: &redis::Client,
        config: RedisConfig,
    ) -> Result<Self, AddressError> {
        let info = client.get_connection_info();
        let has_own = match info.addr() {
            ConnectionAddr::TcpTls {
                insecure,
                tls_params,
                ..
            } => *insecure || tls_params.is_some(),
            _ => false,
        };
        let wrong = |problem| AddressError::of(&info.addr().to_string(), problem);
        let address = Address::of(info).map_err(wrong)?;
        if config.has_tls() && address.is_for_all_to_read() {
            return Err(wrong(AddressProblem::Unencrypted));
        }
        if has_own && !config.has_tls() {
            return Err(wrong(AddressProblem::TlsOfClient));
        }
        Ok(Self::to(Target::new(address, config)))
    }
}
