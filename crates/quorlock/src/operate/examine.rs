//! What is found out about the nodes of a deployment, for the command `quorlock doctor`.

use std::time::Duration;

#[cfg(feature = "redis")]
use quorlock_redis::{ExaminedServer, SentinelFacts};

use crate::error::NodeProblem;

/// A deployment, as its nodes and the settings of this client describe it.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The nodes, in canonical order.
    pub nodes: Vec<ExaminedNode>,
    /// The settings.
    pub limits: Limits,
}

/// The settings of a client, as they are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The number of nodes that a lock needs.
    pub needed: usize,
    /// Whether the client watches its nodes.
    pub is_watched: bool,
    /// The lease of a lock without an explicit one.
    pub lease: Duration,
    /// The time for each node to answer, with this lease.
    pub member_timeout: Duration,
    /// The longest lease of the deployment.
    pub longest_lease: Duration,
    /// How far the clock of a node may step.
    pub clock_margin: Duration,
}

/// One node.
#[derive(Clone, Debug)]
pub struct ExaminedNode {
    /// The node's address, without credentials.
    pub address: String,
    /// Why no lock can be held there, as connecting says it.
    pub problem: Option<NodeProblem>,
    /// What else is known.
    pub facts: NodeFacts,
}

/// What a node has said.
#[derive(Clone, Debug)]
pub enum NodeFacts {
    /// A Redis server, a Sentinel group or a cluster.
    #[cfg(feature = "redis")]
    Redis {
        /// Whether it is a cluster, or a shard of one.
        is_of_cluster: bool,
        /// Its servers.
        servers: Vec<ExaminedServer>,
        /// The sentinels of the group.
        sentinels: Vec<SentinelFacts>,
    },
    /// A store.
    Store(StoreFacts),
}

/// What a store has said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreFacts {
    /// The program and its version.
    pub version: Option<String>,
    /// How long it took to connect, and to read the first record.
    pub connected_in: Duration,
    /// How far its clock is ahead of this machine's, in milliseconds; less than zero if it is behind. `None` for a store
    /// without a clock.
    pub ahead_millis: Option<i64>,
    /// The bound of this measurement.
    pub within_millis: i64,
    /// How long a read took, the shortest first.
    pub round_trips: Vec<Duration>,
}
