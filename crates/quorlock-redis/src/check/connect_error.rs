//! Why a server cannot be used.

use std::fmt;

use quorlock_core::transport::{Cause, TransportError};

use super::OLDEST_MAJOR;
use crate::address::AddressError;
use crate::failure::advice;

/// Why a server cannot be used. The error contains no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    Address(AddressError),
    /// No connection could be made.
    Unreachable {
        /// Address of the server.
        address: String,
        /// Error text of the operating system.
        detail: String,
    },
    /// The server does not answer.
    TimedOut {
        /// Address of the server.
        address: String,
        /// The time-out that was reached.
        detail: String,
    },
    /// The server requires other credentials.
    BadCredentials {
        /// Address of the server.
        address: String,
        /// Error text of the server.
        detail: String,
    },
    /// The connection cannot be encrypted, because of certificates, host names or versions.
    Tls {
        /// Address of the server.
        address: String,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// The server does not speak Redis.
    NotRedis {
        /// Address of the server.
        address: String,
        /// Its answer.
        detail: String,
    },
    /// The address leads to a proxy for several servers, or to a server with renamed commands.
    Proxy {
        /// Address of the proxy.
        address: String,
        /// Its answer.
        detail: String,
    },
    /// The server is older than version 5.
    TooOld {
        /// Address of the server.
        address: String,
        /// Version of the server.
        version: String,
    },
    /// Grants should wait for the disk, but the server cannot do that.
    NoDiskWait {
        /// Address of the server.
        address: String,
        /// Version of the server.
        version: String,
        /// What the server lacks.
        lack: &'static str,
    },
    /// The server is a replica.
    Replica {
        /// Address of the server.
        address: String,
    },
    /// The server is a Sentinel, which knows the address of a primary but has no locks itself.
    Sentinel {
        /// Address of the Sentinel.
        address: String,
    },
    /// The server is a node of a Redis Cluster.
    ClusterNode {
        /// Address of the node.
        address: String,
    },
    /// The server is an active replica of KeyDB, which merges the writes of both sides: each side grants the same lock.
    ActiveReplica {
        /// Address of the server.
        address: String,
    },
    /// The server answered with another error.
    Refused {
        /// Address of the server.
        address: String,
        /// The error of the server.
        error: TransportError,
    },
}

impl ConnectError {
    /// Returns whether waiting cannot cure the error.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            ConnectError::Unreachable { .. } | ConnectError::TimedOut { .. } => false,
            ConnectError::Refused { error, .. } => !error.cause.may_pass(),
            _ => true,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, cause, detail) = match self {
            ConnectError::Address(error) => return fmt::Display::fmt(error, f),
            ConnectError::Unreachable { address, detail } => (address, Cause::Unreachable, detail),
            ConnectError::TimedOut { address, detail } => (address, Cause::TimedOut, detail),
            ConnectError::BadCredentials { address, detail } => (address, Cause::NoAuth, detail),
            ConnectError::Tls { address, detail } => (address, Cause::Tls, detail),
            ConnectError::NotRedis { address, detail } => (address, Cause::Protocol, detail),
            ConnectError::Proxy { address, detail } => {
                return write!(
                    f,
                    "{address} answers, and lacks commands that locks need, like a proxy for several servers (Envoy, Twemproxy) or a server \
                     whose commands were renamed: give the address of the server behind it, or rename no INFO, SCRIPT, EVALSHA and \
                     SUBSCRIBE ({detail})"
                );
            }
            ConnectError::TooOld { address, version } => {
                return write!(
                    f,
                    "{address} runs version {version}: locks need Redis {OLDEST_MAJOR} or newer, or Valkey"
                );
            }
            ConnectError::NoDiskWait {
                address,
                version,
                lack,
            } => {
                return write!(
                    f,
                    "{address} runs version {version}, and Wait::on_disk was set: {lack}"
                );
            }
            ConnectError::Replica { address } => {
                return write!(f, "{address} is a replica: give the address of its primary");
            }
            ConnectError::Sentinel { address } => {
                return write!(
                    f,
                    "{address} is a Sentinel: write redis+sentinel://host:port/NAME with the name of the primary that it watches, \
                     or give the address of that primary"
                );
            }
            ConnectError::ClusterNode { address } => {
                return write!(
                    f,
                    "{address} is a node of a Redis Cluster, whose keys lie on several servers and move between them: write \
                     redis+cluster://host:port[,host:port..]"
                );
            }
            ConnectError::ActiveReplica { address } => {
                return write!(
                    f,
                    "{address} is an active replica of KeyDB, which merges the writes of both sides, so that each grants the same lock: \
                     set active-replica no"
                );
            }
            ConnectError::Refused { address, error } => return write!(f, "{address}: {error}"),
        };
        write!(f, "{address}: {}: {detail}", advice(cause))
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConnectError::Address(error) => Some(error),
            ConnectError::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}
