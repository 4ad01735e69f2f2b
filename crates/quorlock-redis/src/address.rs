//! The address of a server, and the login in it.

pub(crate) mod cluster;
pub(crate) mod group;
pub(crate) mod hosts;

use std::borrow::Cow;
use std::fmt;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo,
};

use crate::connect::Endpoint;

/// A parsed address.
pub(crate) struct Address {
    /// Host and port, or path of the socket.
    pub(crate) endpoint: Endpoint,
    /// Whether TLS is spoken at the endpoint.
    pub(crate) scheme: Scheme,
    /// User, password and database.
    pub(crate) login: RedisConnectionInfo,
    /// The address without credentials, for people, logs and the canonical order.
    pub(crate) shown: String,
}

/// The protocol at an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    /// Redis, unencrypted.
    Plain,
    /// Redis under TLS.
    #[cfg(feature = "tls")]
    Tls,
}

impl Scheme {
    /// Returns the scheme of an address that asks for TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn tls() -> Result<Scheme, AddressError> {
        Ok(Scheme::Tls)
    }

    /// Fails, because the feature `tls` is off.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn tls() -> Result<Scheme, AddressError> {
        Err(AddressError::Tls)
    }

    /// Returns the scheme of an address, and the address in the form without TLS. The parser of the `redis` crate
    /// accepts TLS addresses only if one of its own features is on.
    fn split(address: &str) -> Result<(Scheme, Cow<'_, str>), AddressError> {
        let Some(("rediss" | "valkeys", rest)) = address.split_once("://") else {
            return Ok((Scheme::Plain, Cow::Borrowed(address)));
        };
        let scheme = Scheme::tls()?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        match fragment {
            "" => Ok((scheme, Cow::Owned(format!("redis://{rest}")))),
            _ => Err(AddressError::Insecure),
        }
    }
}

impl Address {
    /// Parses an address.
    pub(crate) fn parse(address: &str) -> Result<Self, AddressError> {
        let (scheme, address) = Scheme::split(address)?;
        let info =
            address
                .as_ref()
                .into_connection_info()
                .map_err(|error| AddressError::Malformed {
                    reason: error
                        .to_string()
                        .replace("- InvalidClientConfig", "")
                        .trim()
                        .to_owned(),
                })?;
        let address = Self::of(&info)?;
        Ok(Address { scheme, ..address })
    }

    /// Takes the address of an existing client of the `redis` crate.
    pub(crate) fn of(info: &ConnectionInfo) -> Result<Self, AddressError> {
        // One connection carries only requests and the other only wake-ups. RESP2 is enough for that, and every
        // server and proxy speaks it.
        let login = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP2);
        let db = login.db();
        if db < 0 {
            return Err(AddressError::Malformed {
                reason: "its database is negative".into(),
            });
        }
        let scheme = match info.addr() {
            ConnectionAddr::TcpTls { .. } => Scheme::tls()?,
            _ => Scheme::Plain,
        };
        let (endpoint, shown) = match info.addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                if host.contains(',') {
                    return Err(AddressError::Malformed {
                        reason: "its host has a comma: several servers are several addresses, several sentinels \
                                 of one group are redis+sentinel://h1,h2,h3/name, several nodes of one cluster \
                                 redis+cluster://h1,h2,h3"
                            .into(),
                    });
                }
                let (host, port) = (host.clone(), *port);
                let endpoint = Endpoint::Tcp { host, port };
                let shown = format!("{endpoint}/{db}");
                (endpoint, shown)
            }
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
            scheme,
            login,
            shown,
        })
    }
}

impl Address {
    /// Whether the bytes cross a network unencrypted.
    pub(crate) fn is_for_all_to_read(&self) -> bool {
        self.scheme == Scheme::Plain && matches!(self.endpoint, Endpoint::Tcp { .. })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Why an address cannot be used. The error never contains the address, which may contain a password.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// The address does not parse.
    Malformed {
        /// What is wrong with the address.
        reason: String,
    },
    /// The address has the scheme of a Sentinel group, but does not parse.
    Group {
        /// What is wrong with the address.
        reason: String,
    },
    /// The address has the scheme of a Redis Cluster, but does not parse.
    Cluster {
        /// What is wrong with the address.
        reason: String,
    },
    /// The address asks for TLS, but the cargo feature `tls` is off.
    Tls,
    /// The address asks for TLS without verification of the server's certificate (`#insecure`).
    Insecure,
    /// The address does not ask for TLS, although the configuration has settings for TLS.
    Unencrypted,
    /// The client of the `redis` crate has its own certificates or verifies none. Neither can be read from it.
    TlsOfClient,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Malformed { reason } => write!(
                f,
                "not the address of a Redis server ({reason}): write \
                 redis://[user[:password]@]host[:port][/db] or unix:///path[?db=1&user=..&pass=..]"
            ),
            AddressError::Group { reason } => write!(
                f,
                "not the address of a Sentinel group ({reason}): write \
                 redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]\
                 [?sentinel_user=..&sentinel_password=..]"
            ),
            AddressError::Cluster { reason } => write!(
                f,
                "not the address of a Redis Cluster ({reason}): write \
                 redis+cluster://[user[:password]@]host[:port][,host[:port]..]"
            ),
            AddressError::Tls => f.write_str(
                "TLS (rediss://, valkeys://) needs the cargo feature `tls`: turn it on, or use redis:// through a tunnel",
            ),
            AddressError::Insecure => f.write_str(
                "#insecure in an address is not supported: name the authority of the server's certificate by Tls::roots_file, \
                 or call Tls::dangerously_accept_any_certificate",
            ),
            AddressError::Unencrypted => f.write_str(
                "there are settings for TLS, and the address does not ask for it: write rediss:// instead of redis://",
            ),
            AddressError::TlsOfClient => f.write_str(
                "the certificates of a redis::Client cannot be read from it: give them by RedisConfig::tls",
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
            "redis://u:s3cret@h/-1",
            "unix:///s?pass=s3cret&db=-1",
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

    /// The `s` of `rediss://` is missing, or the certificates are.
    #[cfg(feature = "tls")]
    #[test]
    fn an_address_says_whether_it_wants_tls() {
        for (address, scheme) in [
            ("redis://h/", Scheme::Plain),
            ("valkey://h/", Scheme::Plain),
            ("unix:///s", Scheme::Plain),
            ("rediss://h/", Scheme::Tls),
            ("valkeys://h/", Scheme::Tls),
        ] {
            assert_eq!(Address::parse(address).unwrap().scheme, scheme, "{address}");
        }
        let full = Address::parse("rediss://bob:s3cret@[::1]:7000/3").unwrap();
        assert_eq!(full.shown, "[::1]:7000/3");
        assert_eq!(full.login.password(), Some("s3cret"));
        for address in ["rediss://u:s3cret@h/#insecure", "valkeys://h/#else"] {
            let error = Address::parse(address).unwrap_err();
            assert_eq!(error, AddressError::Insecure);
            assert!(error.to_string().contains("Tls::roots_file"), "{error}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn without_its_feature_tls_is_refused_by_name() {
        for address in ["rediss://h/", "valkeys://u:s3cret@h/"] {
            let error = Address::parse(address).unwrap_err();
            assert_eq!(error, AddressError::Tls);
            assert!(error.to_string().contains("feature `tls`"), "{error}");
        }
    }
}
