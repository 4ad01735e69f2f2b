//! Why a client could not be made.

use super::ConfigError;

/// Why a client could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be one.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Address(#[from] quorlock_redis::AddressError),
    /// Too few nodes can be used, or one of them never will be.
    #[cfg(feature = "redis")]
    #[error("{}{}", usable(*.reachable, *.needed, *.of), join(.problems))]
    Nodes {
        /// How many can be used.
        reachable: usize,
        /// How many are needed.
        needed: usize,
        /// How many there are.
        of: usize,
        /// What is wrong with the others, each with its address.
        problems: Vec<quorlock_redis::ConnectError>,
    },
}

/// Of one node there is nothing to count.
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
