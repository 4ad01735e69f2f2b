//! How a stream to an endpoint is secured.

use std::fmt;

use quorlock_core::transport::TransportError;

use crate::connect::{ByteStream, Connect, Endpoint};
use crate::error;
use crate::timer::Instant;
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// What lies between the bytes of the network and those of Redis.
#[derive(Clone)]
pub(crate) enum Security {
    /// Nothing.
    Plain,
    /// TLS, from the first byte on.
    #[cfg(feature = "tls")]
    Tls(Tls),
}

impl Security {
    /// A fresh stream to the endpoint, secured. The caller bounds it in time; the deadline is for the handshake.
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
                // What the handshake would take.
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
