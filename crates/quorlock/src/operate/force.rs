//! What came of freeing a name by force.

use std::fmt;

use quorlock_core::message::ForceReleaseReply;
use quorlock_core::name::Name;
use quorlock_core::transport::TransportError;

use crate::error::ConfigError;

/// What each node did. See [`Locks::force_release`](crate::Locks::force_release).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ForceReleased {
    /// The key, with the key prefix.
    pub name: Name,
    /// How many nodes a lock needs.
    pub needed: usize,
    /// Each node, in canonical order.
    pub nodes: Vec<NodeForceRelease>,
}

/// What one node did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeForceRelease {
    /// Which node, without credentials.
    pub address: String,
    /// What it did, or why it did nothing, or may have done nothing.
    pub result: Result<ForceReleaseReply, TransportError>,
}

impl ForceReleased {
    /// How many nodes ended a claim; none if no owner held the name.
    #[must_use]
    pub fn freed(&self) -> usize {
        self.count(|reply| reply == ForceReleaseReply::Freed)
    }

    /// Whether the name is free on enough nodes for a client to acquire it.
    pub(super) fn is_free(&self) -> bool {
        let is_free =
            |reply| matches!(reply, ForceReleaseReply::Freed | ForceReleaseReply::WasFree);
        self.needed <= self.count(is_free)
    }

    fn count(&self, is: impl Fn(ForceReleaseReply) -> bool) -> usize {
        let replies = self
            .nodes
            .iter()
            .filter_map(|node| node.result.as_ref().ok());
        replies.filter(|reply| is(**reply)).count()
    }
}

/// Why a name is not known to be free.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// The name cannot be one.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Fewer nodes than a lock needs say that the name is free now: the owner that held it may hold it still.
    #[error("not enough nodes have freed it; ask again, or wait for the TTL: {0}")]
    Unconfirmed(ForceReleased),
}

impl fmt::Display for ForceReleased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (freed, of, needed) = (self.freed(), self.nodes.len(), self.needed);
        write!(
            f,
            "{}: freed on {freed} of {of} nodes ({needed} needed)",
            self.name
        )?;
        self.nodes
            .iter()
            .try_for_each(|node| write!(f, "\n  {node}"))
    }
}

impl fmt::Display for NodeForceRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.address)?;
        match &self.result {
            Ok(ForceReleaseReply::Freed) => f.write_str("freed"),
            Ok(ForceReleaseReply::WasFree) => f.write_str("was free"),
            // As in `is_free`: what is not known to mean "free" is not taken for it.
            Ok(other) => write!(f, "not confirmed: {other:?}"),
            Err(error) => write!(f, "not confirmed: {error}"),
        }
    }
}
