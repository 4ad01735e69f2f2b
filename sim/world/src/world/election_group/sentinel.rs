//! A sentinel, or a node of a cluster in its place.

use crate::world::id::NodeId;

/// The state of one sentinel.
#[derive(Debug)]
pub(super) struct Sentinel {
    pub(super) id: NodeId,
    /// The server that the sentinel names as the primary.
    pub(super) names: NodeId,
    /// The epoch of that configuration, which grows with each failover.
    pub(super) epoch: u64,
    /// When the sentinel last received something from each server, in the order of the servers.
    pub(super) heard: Vec<u64>,
    pub(super) voice: Voice,
}

/// Whether a sentinel votes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Voice {
    Votes,
    /// The node only names the primary that it has learned of. It is a node of a cluster that began as a replica.
    Listens,
}
