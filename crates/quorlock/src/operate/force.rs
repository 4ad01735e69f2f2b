//! The report of a release by force.

use std::fmt;

use quorlock_core::message::ForceReleaseReply;
use quorlock_core::name::Name;
use quorlock_core::transport::TransportError;

use crate::error::ConfigError;

/// What each node did in a release by force. See [`Locks::force_release`](crate::Locks::force_release).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ForceReleased {
    /// The key, with the key prefix.
    pub name: Name,
    /// The number of nodes that a lock needs.
    pub needed: usize,
    /// The result of each node, in canonical order.
    pub nodes: Vec<NodeForceRelease>,
}

/// What one node did in a release by force.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NodeForceRelease {
    /// The node's address, without credentials.
    pub address: String,
    /// What the node did, or the error. After an indeterminate error the node may have released the name.
    pub result: Result<ForceReleaseReply, TransportError>,
}

impl ForceReleased {
    /// Returns the number of nodes that ended a claim. It is zero if no owner held the name.
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

/// The error of a release by force.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceReleaseError {
    /// The name is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Fewer nodes than a lock needs report that the name is free: its owner may still hold it.
    #[error("not enough nodes have freed it; try again, or wait for the TTL: {0}")]
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
            // Like `is_free`: an unknown reply is not taken for "free".
            Ok(other) => write!(f, "not confirmed: {other:?}"),
            Err(error) => write!(f, "not confirmed: {error}"),
        }
    }
}
