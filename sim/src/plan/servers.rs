//! The servers of a plan, and how messages travel to them.

use serde::{Deserialize, Serialize};

use crate::plan::cluster::Cluster;
use crate::plan::time::SimTime;

/// The servers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// How many.
    pub count: u16,
    /// What one still has after a restart.
    pub persistence: Persistence,
    /// How many replicas each has. A replica answers only once it was promoted.
    pub replicas: u16,
    /// How long a write is on its way to a replica, at least.
    pub replication_lag: SimTime,
    /// How many replicas must have a claim before a grant or a renewal counts (`WAIT`); without, none.
    pub wait: Option<Wait>,
    /// Without how many replicas it takes no writes (`min-replicas-to-write`); without, it always does.
    pub min_replicas: Option<MinReplicas>,
    /// The sentinels of each, which make it a group: they elect another primary when its primary is gone, and clients ask
    /// them which server that is. Without, a node has one address.
    pub sentinels: Option<Sentinels>,
    /// The nodes are the shards of one cluster, which elects primaries by itself and tells clients who owns which slots. Without,
    /// each node is by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
}

impl Nodes {
    /// What an election takes where nodes are groups: their sentinels', or their cluster's.
    pub(crate) fn elections(&self) -> Option<Sentinels> {
        let cluster = self.cluster.as_ref();
        let of_cluster = cluster.map(|cluster| Sentinels::of_cluster(cluster, self.count));
        of_cluster.or_else(|| self.sentinels.clone())
    }

    /// Whether nodes are groups, which elect their primaries.
    pub(crate) fn are_groups(&self) -> bool {
        self.sentinels.is_some() || self.cluster.is_some()
    }
}

/// How many replicas must have a claim before a grant or a renewal counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// So many.
    pub replicas: u16,
    /// The answer is an error if they have not confirmed by then.
    pub within: SimTime,
}

/// A server that takes no writes when too few replicas follow it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinReplicas {
    /// So many must follow (`min-replicas-to-write`).
    pub count: u16,
    /// It notices this much later that one does not any more (`min-replicas-max-lag`).
    pub max_lag: SimTime,
}

/// The sentinels of a group, and what an election takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sentinels {
    /// How many there are.
    pub count: u16,
    /// How many of them must take the primary for down; without, a majority.
    pub quorum: Option<u16>,
    /// A sentinel takes a server for down when it has heard nothing of it for this time (`down-after-milliseconds`).
    pub down_after: SimTime,
    /// From when enough of them take the primary for down until a replica is promoted: the vote, and `REPLICAOF NO ONE`.
    pub election: SimTime,
    /// After the promotion it takes this time until the other sentinels know of it.
    pub gossip: SimTime,
    /// A server that goes on as a primary, though another one is named, is made a replica when that has been seen for this time.
    pub demotion: SimTime,
    /// What becomes of the connections of a server whose role they change.
    pub connections: Connections,
}

/// What sentinels do with the connections of a server whose role they change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// They are ended (`CLIENT KILL`).
    #[default]
    Ended,
    /// They stay, as under sentinels that may not end them, or when an operator changes the roles: a client hears
    /// `READONLY`.
    Kept,
}

impl Default for Sentinels {
    /// Three, which do within tenths of a second what takes seconds by the defaults of Redis.
    fn default() -> Self {
        Sentinels {
            count: 3,
            quorum: None,
            down_after: SimTime::millis(100),
            election: SimTime::millis(20),
            gossip: SimTime::millis(20),
            demotion: SimTime::millis(100),
            connections: Connections::Ended,
        }
    }
}

impl Sentinels {
    /// What an election among so many shards of a cluster takes. Their primaries vote; a node that was deposed follows as soon as it hears
    /// of it, and keeps its connections.
    fn of_cluster(cluster: &Cluster, shards: u16) -> Self {
        Sentinels {
            count: shards,
            quorum: None,
            down_after: cluster.node_timeout,
            election: cluster.election,
            gossip: cluster.gossip,
            demotion: SimTime::ZERO,
            connections: Connections::Kept,
        }
    }

    /// Without so many of them there is no election.
    pub(crate) fn majority(&self) -> u16 {
        self.count / 2 + 1
    }

    /// How many of them must take the primary for down.
    pub(crate) fn quorum(&self) -> u16 {
        self.quorum.unwrap_or(self.majority())
    }

    /// From the loss of a primary, or from the end of what was in the way of an election, until clients can find the new
    /// one and the old one is a replica.
    pub(crate) fn settling(&self) -> SimTime {
        let looks = SimTime::millis(100);
        let parts = [self.down_after, self.election, self.gossip, self.demotion];
        parts.into_iter().fold(looks, SimTime::plus)
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Nodes {
            count: 5,
            persistence: Persistence::EveryWrite,
            replicas: 0,
            replication_lag: SimTime::millis(1),
            wait: None,
            min_replicas: None,
            sentinels: None,
            cluster: None,
        }
    }
}

/// What a server still has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Nothing.
    Memory,
    /// What it had at the last full second (`appendfsync everysec`).
    EverySecond,
    /// Everything (`appendfsync always`).
    #[default]
    EveryWrite,
}

/// How messages travel while nothing is wrong: in order, each for a time drawn between two bounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// The shortest time, one way.
    pub least: SimTime,
    /// The longest time.
    pub most: SimTime,
    /// A call ends after this, on the clock of the client.
    pub call_timeout: SimTime,
    /// A connection attempt ends after this.
    pub connect_timeout: SimTime,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            least: SimTime::millis(1),
            most: SimTime::millis(5),
            call_timeout: SimTime::secs(2),
            connect_timeout: SimTime::secs(1),
        }
    }
}
