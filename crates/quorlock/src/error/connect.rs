//! The error of making a client.

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
    #[error(transparent)]
    Address(#[from] quorlock_redis::AddressError),
    /// Too few nodes are usable, or one of them can never be used.
    #[cfg(feature = "redis")]
    #[error("{}{}", usable(*.reachable, *.needed, *.of), join(.problems))]
    Nodes {
        /// The number of usable nodes.
        reachable: usize,
        /// The number of nodes that are needed.
        needed: usize,
        /// The number of nodes that were given.
        of: usize,
        /// What is wrong with the others, each with its address.
        problems: Vec<quorlock_redis::ConnectError>,
    },
}

/// Describes how many nodes are usable; empty for one node, where there is nothing to count.
#[cfg(feature = "redis")]
fn usable(reachable: usize, needed: usize, of: usize) -> String {
    if of == 1 {
        String::new()
    } else {
        format!("{reachable} of {of} nodes can be used, {needed} are needed: ")
    }
}

#[cfg(feature = "redis")]
fn join(problems: &[quorlock_redis::ConnectError]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("; ")
}
