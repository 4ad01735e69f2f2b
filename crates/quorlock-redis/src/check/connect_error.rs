//! Why a server cannot be used.

use std::fmt;

use quorlock_core::transport::{Cause, TransportError};

use super::OLDEST_MAJOR;
use crate::address::AddressError;

/// Why a server cannot be used. Holds no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be used.
    Address(AddressError),
    /// No connection could be made.
    Unreachable {
        /// Of the server.
        address: String,
        /// The words of the operating system.
        detail: String,
    },
    /// The server does not answer.
    TimedOut {
        /// Of the server.
        address: String,
        /// Which time-out ran out.
        detail: String,
    },
    /// The server wants other credentials.
    BadCredentials {
        /// Of the server.
        address: String,
        /// The words of the server.
        detail: String,
    },
    /// The connection cannot be encrypted: certificates, names, versions.
    Tls {
        /// Of the server.
        address: String,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// Whatever answers does not speak Redis.
    NotRedis {
        /// Of the server.
        address: String,
        /// What it said.
        detail: String,
    },
    /// A proxy that leads to several servers answers, or a server some of whose commands were renamed.
    Proxy {
        /// Of the proxy.
        address: String,
        /// What it said.
        detail: String,
    },
    /// The server is older than version 5.
    TooOld {
        /// Of the server.
        address: String,
        /// Its version.
        version: String,
    },
    /// Grants are to wait for the disk, and the server does not know how to.
    NoDiskWait {
        /// Of the server.
        address: String,
        /// Its version.
        version: String,
        /// What is missing.
        lack: &'static str,
    },
    /// The server is a replica.
    Replica {
        /// Of the server.
        address: String,
    },
    /// The server is a Sentinel, which knows where a primary is, and holds no locks.
    Sentinel {
        /// Of the Sentinel.
        address: String,
    },
    /// The server is a node of a Redis Cluster.
    ClusterNode {
        /// Of the node.
        address: String,
    },
    /// The server is an active replica of KeyDB, which merges what was written on both sides: each side grants the same lock.
    ActiveReplica {
        /// Of the server.
        address: String,
    },
    /// The server answered with another error.
    Refused {
        /// Of the server.
        address: String,
        /// The error.
        error: TransportError,
    },
}

impl ConnectError {
    /// Whether waiting for the server will not help.
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
                    "{address} answers, and does not know what locks need, as a proxy for several servers (Envoy, Twemproxy) or a server \
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
        write!(f, "{address}: {}: {detail}", cause.advice())
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
