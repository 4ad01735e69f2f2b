//! Redis Cluster, with the nodes of a plan as its shards.

use serde::{Deserialize, Serialize};

use crate::time::SimTime;

/// A cluster whose shards are the nodes of a plan. Each shard is a primary and its replicas.
///
/// Each shard owns an equal part of the slots. If clients see the cluster as one node (`lock = "single"`), node 0 owns
/// the slots of all names when the run begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// The time without messages from another node after which a node considers it down (`cluster-node-timeout`). A
    /// node that receives nothing from a majority of the primaries for this long answers `CLUSTERDOWN`.
    pub node_timeout: SimTime,
    /// The time from when a majority of the primaries considers a primary down until one of its replicas is promoted.
    pub election: SimTime,
    /// The time until the other nodes learn of a promotion or of the new owner of a slot.
    pub gossip: SimTime,
    /// How nodes answer requests for their slots while other slots have no owner that is up.
    pub coverage: Coverage,
}

/// How a node answers while slots of other nodes have no owner that is up (`cluster-require-full-coverage`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// The node answers `CLUSTERDOWN` to every request.
    #[default]
    Full,
    /// The node keeps answering requests for its own slots.
    Partial,
}

impl Default for Cluster {
    /// Returns times of tenths of a second. The defaults of Redis are seconds.
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
    /// Returns how much longer than an election it takes until nodes that were cut off answer again.
    pub(crate) fn rejoining(&self) -> SimTime {
        self.node_timeout.plus(self.node_timeout)
    }
}
