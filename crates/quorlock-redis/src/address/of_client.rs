//! The address of a client of the `redis` crate.

use redis::{ConnectionAddr, ConnectionInfo, ProtocolVersion};

use super::hosts::COMMA;
use super::{Address, AddressProblem, Kind, Scheme};
use crate::connect::Endpoint;

impl Address {
    /// Takes the address of an existing client of the `redis` crate.
    pub(crate) fn of(info: &ConnectionInfo) -> Result<Self, AddressProblem> {
        // One connection carries only requests and the other only wake-ups. RESP2 is enough for that, and every
        // server and proxy speaks it.
        let login = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP2);
        let malformed = |kind: Kind, reason: &str| {
            let reason = reason.to_owned();
            let form = kind.form();
            Err(AddressProblem::Malformed { reason, form })
        };
        let scheme = match info.addr() {
            ConnectionAddr::TcpTls { .. } => Scheme::tls()?,
            _ => Scheme::Plain,
        };
        let (kind, endpoint) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                if host.contains(',') {
                    return malformed(Kind::Server, COMMA);
                }
                let (host, port) = (host.clone(), *port);
                (Kind::Server, Endpoint::Tcp { host, port })
            }
            ConnectionAddr::Unix(path) => (Kind::Socket, Endpoint::Unix { path: path.clone() }),
            _ => return malformed(Kind::Server, "an unknown kind of address"),
        };
        if login.db() < 0 {
            return malformed(kind, "its database is negative");
        }
        Ok(Address::new(endpoint, scheme, login))
    }
}
