//! The error of making a client.

use std::fmt;

use quorlock_core::transport::TransportError;

use super::ConfigError;

/// The error of making a client from addresses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address is invalid.
    #[cfg(feature = "redis")]
    #[error("{error}{also}", error = .0, also = or_a_store(.0))]
    Address(#[from] quorlock_redis::AddressError),
    /// The address of a store is invalid.
    #[cfg(feature = "store")]
    #[error(transparent)]
    StoreAddress(#[from] quorlock_store::AddressError),
    /// An address of this scheme needs a cargo feature that is off.
    #[error(
        "an address that begins with {scheme}: needs the cargo feature `{feature}` of quorlock, which is off"
    )]
    Feature {
        /// The scheme of the address.
        scheme: &'static str,
        /// The cargo feature.
        feature: &'static str,
    },
    /// The system starts no thread for a [blocking](crate::blocking) client.
    #[error(
        "no thread for a blocking client: {detail}; the system has too many threads or too little memory"
    )]
    Thread {
        /// What the system says.
        detail: String,
    },
    /// Too few nodes are usable, or one of them can never be used.
    #[error("{}{}", usable(*.reachable, *.needed, *.of), join(.problems))]
    Nodes {
        /// The number of usable nodes.
        reachable: usize,
        /// The number of nodes that are needed.
        needed: usize,
        /// The number of nodes that were given.
        of: usize,
        /// What is wrong with the others, each with its address.
        problems: Vec<NodeProblem>,
    },
}

impl ConnectError {
    /// Returns whether waiting cannot cure the error: the program, an address, the settings or a server must change.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            ConnectError::Nodes { problems, .. } => problems.iter().any(NodeProblem::is_final),
            _ => true,
        }
    }
}

/// Why a node cannot be used. It contains no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NodeProblem {
    /// A Redis server, a Sentinel group or a cluster cannot be used.
    #[cfg(feature = "redis")]
    Redis(quorlock_redis::ConnectError),
    /// A store cannot be used.
    Store {
        /// The address of the store.
        address: String,
        /// What is wrong, and what to do.
        error: TransportError,
    },
}

impl NodeProblem {
    /// Returns whether waiting cannot cure the problem.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            #[cfg(feature = "redis")]
            NodeProblem::Redis(error) => error.is_final(),
            NodeProblem::Store { error, .. } => !error.cause.may_pass(),
        }
    }
}

impl fmt::Display for NodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "redis")]
            NodeProblem::Redis(error) => fmt::Display::fmt(error, f),
            NodeProblem::Store { address, error } => write!(f, "{address}: {error}"),
        }
    }
}

impl std::error::Error for NodeProblem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            #[cfg(feature = "redis")]
            NodeProblem::Redis(error) => error.source(),
            NodeProblem::Store { error, .. } => Some(error),
        }
    }
}

/// The schemes that the adapter of Redis does not know of.
#[cfg(feature = "redis")]
fn or_a_store(error: &quorlock_redis::AddressError) -> &'static str {
    match error.problem {
        quorlock_redis::AddressProblem::UnknownScheme => {
            "; of a store etcd://, mongodb://, mysql://, postgres://, s3://, sqlite: or zk://"
        }
        _ => "",
    }
}

/// Describes how many nodes are usable; empty for one node, where there is nothing to count.
fn usable(reachable: usize, needed: usize, of: usize) -> String {
    if of == 1 {
        String::new()
    } else {
        format!("{reachable} of {of} nodes can be used, {needed} are needed: ")
    }
}

fn join(problems: &[NodeProblem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}
