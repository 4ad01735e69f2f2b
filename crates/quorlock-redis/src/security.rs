//! Encryption of the stream to an endpoint.

use std::fmt;

use quorlock_core::transport::TransportError;

use crate::connect::{ByteStream, Connect, Endpoint};
use crate::error;
use crate::timer::Instant;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// Whether the bytes on the network are encrypted.
#[derive(Clone)]
pub(crate) enum Security {
    /// No encryption.
    Plain,
    /// TLS, from the first byte on.
    #[cfg(feature = "tls")]
    Tls(Tls),
}

impl Security {
    /// Connects to the endpoint, with encryption if it is set. The caller bounds the time; the deadline is for the
    /// handshake.
    pub(crate) async fn stream(
        &self,
        network: &dyn Connect,
        to: &Endpoint,
        deadline: Instant,
    ) -> Result<Box<dyn ByteStream>, TransportError> {
        let stream = network.connect(to).await;
        let stream = stream.map_err(|error| error::unreachable(error.to_string()))?;
        match self {
            Security::Plain => {
                // Only a TLS handshake needs the deadline.
                let _ = deadline;
                Ok(stream)
            }
            #[cfg(feature = "tls")]
            Security::Tls(tls) => tls.wrap(stream, to, deadline).await,
        }
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Security::Plain => f.write_str("Plain"),
            #[cfg(feature = "tls")]
            Security::Tls(tls) => tls.fmt(f),
        }
    }
}
