//! The nodes of a plan as shards of a Redis Cluster.

use serde::{Deserialize, Serialize};

use crate::plan::time::SimTime;

/// A cluster whose shards are the nodes of a plan, each a primary and its replicas. Its parts of the slots are equal; where it is one
/// node to clients (`lock = "single"`), the slots of all names are those of node 0 when the run begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// A node takes another one for down when it has heard nothing of it for this time, and answers `CLUSTERDOWN` when it has heard no
    /// majority of the primaries for this time (`cluster-node-timeout`).
    pub node_timeout: SimTime,
    /// From when a majority of the primaries takes a primary for down until one of its replicas is promoted.
    pub election: SimTime,
    /// After a promotion, or when a slot has another owner, it takes this time until the other nodes know of it.
    pub gossip: SimTime,
    /// What becomes of the other slots while some have no owner that is up.
    pub coverage: Coverage,
}

/// What a node answers while slots of others have no owner that is up (`cluster-require-full-coverage`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// `CLUSTERDOWN` to every request.
    #[default]
    Full,
    /// As before.
    Partial,
}

impl Default for Cluster {
    /// What takes seconds by the defaults of Redis takes tenths.
    fn default() -> Self {
        Cluster {
            node_timeout: SimTime::millis(100),
            election: SimTime::millis(20),
            gossip: SimTime::millis(20),
            coverage: Coverage::Full,
        }
    }
}

impl Cluster {
    /// How much longer than an election it takes until nodes that were cut off answer again.
    pub(crate) fn rejoining(&self) -> SimTime {
        self.node_timeout.plus(self.node_timeout)
    }
}
