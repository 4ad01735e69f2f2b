//! Redis Cluster, with the nodes of a plan as shards.

use serde::{Deserialize, Serialize};

use crate::plan::time::SimTime;

/// A cluster whose shards are the nodes of a plan, each a primary and its replicas.
///
/// Each shard owns an equal part of the slots. Where clients see the cluster as one node (`lock = "single"`), node 0
/// owns the slots of all names when the run begins.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// The time after which a node considers another node down when it has received nothing from it, and after which
    /// it answers `CLUSTERDOWN` when it has received nothing from a majority of the primaries
    /// (`cluster-node-timeout`).
    pub node_timeout: SimTime,
    /// The time from when a majority of the primaries considers a primary down until one of its replicas is promoted.
    pub election: SimTime,
    /// The time until the other nodes know of a promotion or of a slot's new owner.
    pub gossip: SimTime,
    /// How nodes answer for other slots while some slots have no owner that is up.
    pub coverage: Coverage,
}

/// How a node answers while slots of other nodes have no owner that is up (`cluster-require-full-coverage`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// It answers `CLUSTERDOWN` to every request.
    #[default]
    Full,
    /// It answers as before.
    Partial,
}

impl Default for Cluster {
    /// Returns tenths of a second for what takes seconds with the defaults of Redis.
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
