//! Why an address cannot be used.

use std::fmt;

use super::quoted::quoted;

/// Why an address cannot be used. The error contains no password.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AddressError {
    /// The address without login, parameters and whatever else may be part of a password: `..` stands for them.
    pub address: String,
    /// What is wrong with the address.
    pub problem: AddressProblem,
}

impl AddressError {
    /// Returns the error of an address as it was given.
    pub(crate) fn of(address: &str, problem: AddressProblem) -> Self {
        AddressError {
            address: quoted(address),
            problem,
        }
    }
}

/// What is wrong with an address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AddressProblem {
    /// The address does not begin with a scheme, such as `redis://`.
    NoScheme,
    /// The address begins with a scheme that no kind of address has.
    UnknownScheme,
    /// A part of the address is missing or does not parse.
    Malformed {
        /// What is wrong, and what to write instead.
        reason: String,
        /// How an address of this kind is written.
        form: &'static str,
    },
    /// The address has a part that has no meaning in an address of its kind: a parameter, a fragment (`#..`), or
    /// something in its path. It is not ignored, because clients that understand it differently do not exclude each other.
    UnknownPart {
        /// The part, by its name if that cannot be a piece of a password.
        part: String,
        /// How an address of this kind is written.
        form: &'static str,
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
        write!(f, "the address {} {}", self.address, self.problem)
    }
}

impl fmt::Display for AddressProblem {
    /// A predicate whose subject is the address: `has no scheme: ..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressProblem::NoScheme => {
                "has no scheme: write redis://host:port, and a scheme in front of each of several addresses"
            }
            AddressProblem::UnknownScheme => {
                "has a scheme that is not known: write redis://, rediss:// (TLS), unix://, redis+sentinel:// or \
                 redis+cluster:// (rediss+.. for TLS), or the same with valkey"
            }
            AddressProblem::Malformed { reason, form } => {
                return write!(f, "is malformed ({reason}): write {form}");
            }
            AddressProblem::UnknownPart { part, form } => {
                return write!(f, "has {part}, which means nothing here: write {form}");
            }
            AddressProblem::Tls => {
                "asks for TLS, which needs the cargo feature `tls`: turn it on, or use redis:// through a tunnel"
            }
            AddressProblem::Insecure => {
                "has #insecure, which is not supported: name the authority of the server's certificate by \
                 Tls::roots_file, or call Tls::dangerously_accept_any_certificate"
            }
            AddressProblem::Unencrypted => {
                "does not ask for TLS, and there are settings for TLS: write rediss:// instead of redis://"
            }
            AddressProblem::TlsOfClient => {
                "is that of a redis::Client whose certificates cannot be read from it: give them by RedisConfig::tls"
            }
        })
    }
}

impl std::error::Error for AddressError {}
