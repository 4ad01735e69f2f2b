//! The servers of a plan, and its network.

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::time::SimTime;

/// The nodes of a plan, and the servers of each node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// The number of nodes.
    pub count: u16,
    /// The kind of each node, in their order. Nodes that are not in the list are lock servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<NodeKind>,
    /// The data that a server still has after a restart.
    pub persistence: Persistence,
    /// The number of replicas of each node. A replica answers only after it was promoted.
    pub replicas: u16,
    /// The shortest time that a write takes to reach a replica.
    pub replication_lag: SimTime,
    /// The number of replicas that must have a claim before a grant or a renewal counts (`WAIT`). `None` if no replica
    /// is awaited.
    pub wait: Option<Wait>,
    /// The number of replicas that a primary needs to accept writes (`min-replicas-to-write`). `None` if it always
    /// accepts them.
    pub min_replicas: Option<MinReplicas>,
    /// The sentinels of each node, which make the node a group. They elect another primary when the primary fails, and
    /// clients ask them for its address. `None` if each node has a fixed address.
    pub sentinels: Option<Sentinels>,
    /// The cluster whose shards are the nodes. A cluster elects its primaries itself and tells clients which node owns
    /// which slots. `None` if the nodes are independent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
}

impl Nodes {
    /// Returns the times of an election if the nodes are groups: those of their sentinels, or of their cluster.
    pub fn elections(&self) -> Option<Sentinels> {
        let cluster = self.cluster.as_ref();
        let of_cluster = cluster.map(|cluster| Sentinels::of_cluster(cluster, self.count));
        of_cluster.or_else(|| self.sentinels.clone())
    }

    /// Returns the kind of a node of the plan.
    pub fn kind(&self, node: u16) -> NodeKind {
        let kind = self.kinds.get(usize::from(node));
        kind.copied().unwrap_or_default()
    }

    /// Returns whether a replica can take the place of any node. A consensus store chooses its leader by itself.
    pub fn can_fail_over(&self) -> bool {
        (0..self.count).any(|node| self.kind(node) != NodeKind::Consensus)
    }

    /// Returns whether nodes are groups, which elect their primaries.
    pub fn are_groups(&self) -> bool {
        self.sentinels.is_some() || self.cluster.is_some()
    }
}

/// What a node is, and so who executes the requests of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A lock server, such as Redis. It executes requests itself.
    #[default]
    Server,
    /// A database. Clients apply requests to its records, and write them back if they are unchanged. It has a clock. A crash
    /// loses nothing that it has acknowledged, except with its disk ([`Persistence::Memory`]), or if commits are acknowledged before
    /// they are on the disk ([`Persistence::EverySecond`]): then the last ones are missing, under the same identity. An asynchronous
    /// replica may take over without the last writes.
    Database,
    /// A consensus store, such as etcd. Clients write its records in the same way. It has no clock, and forgets nothing when its
    /// leader changes.
    Consensus,
}

impl NodeKind {
    /// Returns whether clients execute the requests, on records that the node stores.
    #[must_use]
    pub const fn is_store(self) -> bool {
        !matches!(self, NodeKind::Server)
    }
}

/// The number of replicas that must have a claim before a grant or a renewal counts, with a time limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The number of replicas.
    pub replicas: u16,
    /// How long the server waits for their confirmations before it answers with an error.
    pub within: SimTime,
}

/// The number of replicas that a server needs to accept writes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinReplicas {
    /// The number of replicas that must follow the server (`min-replicas-to-write`).
    pub count: u16,
    /// How much later the server notices that a replica no longer follows it (`min-replicas-max-lag`).
    pub max_lag: SimTime,
}

/// The sentinels of a group, and the times of an election.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sentinels {
    /// The number of sentinels.
    pub count: u16,
    /// The number of sentinels that must consider the primary down before an election. `None` for a majority.
    pub quorum: Option<u16>,
    /// How long a sentinel receives nothing from a server before it considers the server down
    /// (`down-after-milliseconds`).
    pub down_after: SimTime,
    /// The time from when enough sentinels consider the primary down until a replica is promoted. It includes the vote
    /// and `REPLICAOF NO ONE`.
    pub election: SimTime,
    /// The time from a promotion until the other sentinels learn of it.
    pub gossip: SimTime,
    /// How long a server must act as a primary, while the sentinels name another one, before it is made a replica.
    pub demotion: SimTime,
    /// Whether sentinels close the connections of a server whose role they change.
    pub connections: Connections,
}

/// Whether sentinels close the connections of a server whose role they change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// They close the connections (`CLIENT KILL`).
    #[default]
    Ended,
    /// They leave the connections open. Sentinels without the permission to close them do so, and so does an operator
    /// who changes roles. Clients then receive `READONLY`.
    Kept,
}

impl Default for Sentinels {
    /// Returns three sentinels with times of tenths of a second. The defaults of Redis are seconds.
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
    /// Returns the times of an election in a cluster with this many shards, whose primaries vote. A deposed node
    /// becomes a replica as soon as it learns of the election, and keeps its connections.
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

    /// Returns the number of votes that an election needs.
    pub fn majority(&self) -> u16 {
        self.count / 2 + 1
    }

    /// Returns how many sentinels must consider the primary down.
    pub fn quorum(&self) -> u16 {
        self.quorum.unwrap_or(self.majority())
    }

    /// Returns the time from the loss of a primary until clients can find the new primary and the old one is a
    /// replica. If something prevented the election, the time counts from when that ended.
    pub(crate) fn settling(&self) -> SimTime {
        let checks = SimTime::millis(100);
        let parts = [self.down_after, self.election, self.gossip, self.demotion];
        parts.into_iter().fold(checks, SimTime::plus)
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Nodes {
            count: 5,
            kinds: Vec::new(),
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

/// The data that a server still has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// The server keeps nothing.
    Memory,
    /// The server keeps what it had at the last full second (`appendfsync everysec`).
    EverySecond,
    /// The server keeps everything (`appendfsync always`).
    #[default]
    EveryWrite,
}

/// The network without faults: it delivers messages in order, each after a time drawn between two bounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// The shortest time that a message takes, one way.
    pub min: SimTime,
    /// The longest time that a message takes, one way.
    pub max: SimTime,
    /// The time-out of a call, measured on the clock of the client.
    pub call_timeout: SimTime,
    /// The time-out of a connection attempt.
    pub connect_timeout: SimTime,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            min: SimTime::millis(1),
            max: SimTime::millis(5),
            call_timeout: SimTime::secs(2),
            connect_timeout: SimTime::secs(1),
        }
    }
}
