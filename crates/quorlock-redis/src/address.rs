//! Where a server is, and how to log in.

use std::fmt;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};

use crate::connect::Endpoint;

/// A parsed address.
pub(crate) struct Address {
    /// Where.
    pub(crate) endpoint: Endpoint,
    /// Under which name, with which password, to which database.
    pub(crate) login: RedisConnectionInfo,
    /// The address without credentials: for people, logs and the canonical order.
    pub(crate) shown: String,
}

impl Address {
    /// Parses an address.
    pub(crate) fn parse(address: &str) -> Result<Self, AddressError> {
        let scheme = address.split_once("://").map(|(scheme, _)| scheme);
        if matches!(scheme, Some("rediss" | "valkeys")) {
            return Err(AddressError::Tls);
        }
        let info = address
            .into_connection_info()
            .map_err(|error| AddressError::Malformed {
                reason: error
                    .to_string()
                    .replace("- InvalidClientConfig", "")
                    .trim()
                    .to_owned(),
            })?;
        Self::of(&info)
    }

    /// Takes the address of a client that was made elsewhere.
    pub(crate) fn of(info: &ConnectionInfo) -> Result<Self, AddressError> {
        // One connection carries requests only and the other wake-ups only: RESP2 is all that is needed, and every
        // server and proxy speaks it.
        let login = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP2);
        let db = login.db();
        let (endpoint, shown) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                let shown = if host.contains(':') {
                    format!("[{host}]:{port}/{db}")
                } else {
                    format!("{host}:{port}/{db}")
                };
                let host = host.clone();
                (Endpoint::Tcp { host, port: *port }, shown)
            }
            ConnectionAddr::TcpTls { .. } => return Err(AddressError::Tls),
            ConnectionAddr::Unix(path) => {
                let shown = match db {
                    0 => format!("unix:{}", path.display()),
                    db => format!("unix:{}?db={db}", path.display()),
                };
                (Endpoint::Unix { path: path.clone() }, shown)
            }
            _ => {
                return Err(AddressError::Malformed {
                    reason: "an unknown kind of address".into(),
                });
            }
        };
        Ok(Address {
            endpoint,
            login,
            shown,
        })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Why an address cannot be used. Never holds the address, which may hold a password.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// It does not parse.
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// It asks for TLS, which is not supported yet.
    Tls,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Malformed { reason } => write!(
                f,
                "not the address of a Redis server ({reason}): write \
                 redis://[user[:password]@]host[:port][/db] or unix:///path[?db=1&user=..&pass=..]"
            ),
            AddressError::Tls => f.write_str(
                "TLS (rediss://) is not supported yet: use redis:// through a tunnel, or bring your own Connect",
            ),
        }
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(address: &str) -> String {
        Address::parse(address).unwrap().shown
    }

    #[test]
    fn an_address_is_shown_without_credentials() {
        assert_eq!(shown("redis://127.0.0.1"), "127.0.0.1:6379/0");
        assert_eq!(
            shown("redis://bob:s3cret@example.org:7000/3"),
            "example.org:7000/3"
        );
        assert_eq!(shown("redis://:s3cret@[::1]:7000"), "[::1]:7000/0");
        assert_eq!(
            shown("unix:///var/a.sock?user=bob&pass=s3cret"),
            "unix:/var/a.sock"
        );
        assert_eq!(
            shown("redis+unix:///var/a.sock?db=2"),
            "unix:/var/a.sock?db=2"
        );
    }

    #[test]
    fn debug_shows_no_credentials() {
        let address = Address::parse("redis://bob:s3cret@h/1").unwrap();
        assert_eq!(format!("{address:?}"), "h:6379/1");
        assert_eq!(address.login.username(), Some("bob"));
        assert_eq!(address.login.password(), Some("s3cret"));
    }

    #[test]
    fn a_malformed_address_is_refused_without_repeating_it() {
        for address in [
            "",
            "127.0.0.1:6379",
            "http://u:s3cret@h/",
            "redis://u:s3cret@h/notadb",
            "redis://u:s3cret@h:99999/",
            "redis://u:s3cret@0.0.0.0/",
            "redis:///0",
            "redis://u:s3cret@h/?protocol=s3cret9",
        ] {
            let error = Address::parse(address).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(matches!(error, AddressError::Malformed { .. }), "{text}");
            if !address.contains("protocol") {
                assert!(!text.contains("s3cret"), "{text}");
            }
            assert!(text.contains("write redis://"), "{text}");
        }
    }

    #[test]
    fn tls_is_refused_by_name() {
        assert_eq!(
            Address::parse("rediss://h/").unwrap_err(),
            AddressError::Tls
        );
        assert_eq!(
            Address::parse("valkeys://h/").unwrap_err(),
            AddressError::Tls
        );
    }
}
