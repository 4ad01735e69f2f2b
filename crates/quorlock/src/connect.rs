//! Clients of real Redis servers, with the constructors of [`Locks`] that take addresses.

use std::sync::Arc;

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::quorum::Threshold;
use quorlock_core::transport::Transport;
use quorlock_redis::{
    Backlog, Checked, ConnectError as NodeError, Doubt, RedisClient, RedisTransport,
};

use crate::builder::{LocksBuilder, distinct};
use crate::error::{ConfigError, ConnectError};
use crate::locks::Locks;
use crate::shared::trust::NodeTrust;
use crate::telemetry;

impl Locks {
    /// Locks on one Redis server: `redis://[user[:password]@]host[:port][/db]` or `unix:///path`.
    ///
    /// `redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]` are locks on the primary of a Sentinel group,
    /// whichever server that is at the time. `redis+cluster://[user[:password]@]host[:port][,host[:port]..]` are locks on a Redis
    /// Cluster, each on the node that owns the slot of its name. A failover may lose a claim that the new primary has not got, and the lock is
    /// granted twice then; see [`RedisConfig::wait`](quorlock_redis::RedisConfig::wait), and [`Locks::quorum`] of several groups.
    ///
    /// # Errors
    /// [`ConnectError`] when the server cannot be used, and why.
    pub async fn connect(address: impl AsRef<str>) -> Result<Self, ConnectError> {
        Self::builder().connect(address).await
    }

    /// Locks on a majority of independent Redis servers (RedLock). The servers must not replicate each other. Sentinel groups and
    /// clusters are members like servers, in any mixture: each is one thing that fails by itself. (Of a cluster one shard is used, under a
    /// tag. For a majority of its shards see [`Locks::majority_of_shards`].)
    ///
    /// A minority may be down at the moment; it is used when it comes up. An even number is allowed and buys nothing:
    /// four tolerate one failure, as three do.
    ///
    /// Servers that are new to these locks are watched first, for one [`longest_lease`](LocksBuilder::longest_lease), a
    /// minute by default: the first lock comes after that, unless [`LocksBuilder::trust_fresh_nodes`] was called.
    ///
    /// # Errors
    /// [`ConnectError`] when too few servers can be used, one of them is no primary Redis server that lets us in, or
    /// two addresses lead to the same server. (The servers that answer are compared; a server that is down, and one
    /// whose user may not ask `INFO`, cannot be.)
    pub async fn quorum<A: AsRef<str>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, ConnectError> {
        Self::builder().quorum(addresses).await
    }

    /// Locks on a majority of the shards of one Redis Cluster: `redis+cluster://[user[:password]@]host[:port][,host[:port]..]`, and of how
    /// many shards (an odd number, three or more, and no more than the cluster has primaries).
    ///
    /// Each name is locked on that many primaries, under a tag on each. So a lock is held, and others are granted, while any minority
    /// of those shards fails over, and a promoted replica that has not got a claim does not give it away: its votes do not count for
    /// one [`longest_lease`](LocksBuilder::longest_lease). Set `cluster-require-full-coverage no`, or all shards stop serving
    /// while one has no primary.
    ///
    /// All clients of the names use the same number of shards. A name must not have a tag of its own.
    ///
    /// ```no_run
    /// # async fn shards() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::Locks;
    ///
    /// let locks = Locks::majority_of_shards("redis+cluster://10.0.0.1,10.0.0.2", 3).await?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Locks::quorum`], and for a number of shards that cannot be ([`ConfigError::ShardCount`],
    /// [`ConfigError::TooFewPrimaries`]), an address that leads to no cluster ([`ConfigError::NoCluster`]), and two shards on
    /// one primary ([`ConfigError::SameShard`]).
    pub async fn majority_of_shards(
        address: impl AsRef<str>,
        shards: usize,
    ) -> Result<Self, ConnectError> {
        Self::builder().majority_of_shards(address, shards).await
    }
}

impl LocksBuilder {
    /// As [`Locks::connect`], with these settings.
    ///
    /// # Errors
    /// As [`Locks::connect`], and [`ConnectError::Config`].
    pub async fn connect(self, address: impl AsRef<str>) -> Result<Locks, ConnectError> {
        self.quorum([address]).await
    }

    /// As [`Locks::quorum`], with these settings.
    ///
    /// # Errors
    /// As [`Locks::quorum`], and [`ConnectError::Config`].
    pub async fn quorum<A: AsRef<str>>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Locks, ConnectError> {
        self.check()?;
        let nodes = addresses
            .into_iter()
            .map(|address| Ok(RedisTransport::open(address.as_ref(), self.redis.clone())?))
            .collect::<Result<Vec<_>, ConnectError>>()?;
        let nodes = self.members(nodes)?;
        self.join(nodes).await
    }

    /// As [`Locks::majority_of_shards`], with these settings.
    ///
    /// # Errors
    /// As [`Locks::majority_of_shards`], [`ConnectError::Config`], and [`ConfigError::ClusterTrust`] with another
    /// [`node_trust`](LocksBuilder::node_trust) than [`NodeTrust::Watched`].
    pub async fn majority_of_shards(
        self,
        address: impl AsRef<str>,
        shards: usize,
    ) -> Result<Locks, ConnectError> {
        self.check()?;
        if shards < 3 || shards.is_multiple_of(2) {
            return Err(ConfigError::ShardCount { shards }.into());
        }
        let cluster = RedisTransport::open(address.as_ref(), self.redis.clone())?;
        let address = || cluster.address().to_owned();
        if !cluster.is_divided() {
            return Err(ConfigError::NoCluster { address: address() }.into());
        }
        self.trusts_as_cluster(&cluster, shards)?;
        let found = cluster.primaries().await;
        let primaries = found.map_err(|problem| ConnectError::Nodes {
            reachable: 0,
            needed: Threshold::majority(shards).needed(),
            of: shards,
            problems: vec![problem],
        })?;
        if primaries.len() < shards {
            return Err(ConfigError::TooFewPrimaries {
                address: address(),
                shards,
                primaries: primaries.len(),
            }
            .into());
        }
        let nodes = (0..shards).filter_map(|index| cluster.shard(index, shards));
        let nodes: Vec<_> = nodes.collect();
        on_different_primaries(&nodes).await?;
        self.join(nodes).await
    }

    /// The members that these addresses are. Of a cluster among several that is one shard: only what lies in one slot has one process to
    /// watch, and a marker that scripts about it can use.
    fn members(&self, nodes: Vec<RedisTransport>) -> Result<Vec<RedisTransport>, ConfigError> {
        let of = nodes.len();
        let member = |node: RedisTransport| match node.shard(0, 1) {
            None => Ok(node),
            Some(_) if of == 1 && self.trust_in(of) == NodeTrust::Unwatched => Ok(node),
            Some(_) if of == 1 => Err(ConfigError::WatchedCluster {
                address: node.address().to_owned(),
            }),
            Some(shard) => {
                self.trusts_as_cluster(&node, of)?;
                Ok(shard)
            }
        };
        nodes.into_iter().map(member).collect()
    }

    /// Checks that a cluster in a majority is watched: replicas take the places of its primaries, and slots move between them.
    fn trusts_as_cluster(&self, cluster: &RedisTransport, of: usize) -> Result<(), ConfigError> {
        match self.trust_in(of) {
            NodeTrust::Watched => Ok(()),
            trust => Err(ConfigError::ClusterTrust {
                address: cluster.address().to_owned(),
                trust: format!("{trust:?}"),
            }),
        }
    }

    /// A client of these nodes, if enough of them can be used.
    async fn join(self, mut nodes: Vec<RedisTransport>) -> Result<Locks, ConnectError> {
        nodes.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(nodes.iter().map(|node| node.address()))?;
        let checks = join_all(nodes.iter().map(RedisTransport::check)).await;
        let needed = Threshold::majority(nodes.len()).needed();
        let of = nodes.len();
        different(&nodes, &checks)?;
        if self.trust_in(of) != NodeTrust::Unwatched {
            warn_of_backups(&nodes, &checks);
        }
        let problems: Vec<NodeError> = checks.into_iter().filter_map(Result::err).collect();
        let reachable = of - problems.len();
        if problems.iter().any(NodeError::is_final) || reachable < needed {
            return Err(ConnectError::Nodes {
                reachable,
                needed,
                of,
                problems,
            });
        }
        if telemetry::hears_of_doubts() {
            warn_of_doubts(&nodes, self.prefix()).await;
        }
        let nodes = nodes
            .into_iter()
            .map(|node| Arc::new(node) as Arc<dyn Transport>);
        self.doubt_call_timeout();
        Ok(self.build(nodes.collect())?)
    }

    /// A call that takes longer than half of a lease leaves no time to try again on another connection. Of the default
    /// nothing is said: a client of short leases, which has not set it, could only be told to set it.
    fn doubt_call_timeout(&self) {
        let lease = self.watchdog_lease;
        let bound = self.redis.chosen_call_bound();
        let doubt = bound.filter(|bound| lease / 2 < *bound).map(|bound| {
            format!("call_timeout, {bound:?}, is more than half of watchdog_lease, {lease:?}: a connection that breaks may cost the lock")
        });
        telemetry::built(doubt.into_iter());
    }

    /// Locks on one server by a client of your own, of the `redis` crate in the version of
    /// [`RedisClient`](crate::transport::RedisClient).
    ///
    /// The client's addresses, credentials and database are used, over connections of Quorlock's own: a lock must not
    /// wait behind other commands, nor be sent again by itself. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectError`] for an address that is not supported, or settings that do not fit together.
    pub fn from_redis_client(self, client: &RedisClient) -> Result<Locks, ConnectError> {
        let node = RedisTransport::from_redis_client(client, self.redis.clone())?;
        self.doubt_call_timeout();
        Ok(self.build(vec![Arc::new(node)])?)
    }
}

/// Checks that the slots of shards lie on as many primaries. (A slot without an owner is told by the check of its shard.)
async fn on_different_primaries(shards: &[RedisTransport]) -> Result<(), ConfigError> {
    let name = Name::new("lock").map_err(ConfigError::Name)?;
    let found = shards.iter().map(|shard| async {
        let primary = shard.primaries().await.ok()?.into_iter().next()?;
        Some((primary, shard.slot(&name).ok()?.0))
    });
    let mut places: Vec<(String, u16)> = join_all(found).await.into_iter().flatten().collect();
    let mut slots: Vec<u16> = places.iter().map(|(_, slot)| *slot).collect();
    slots.sort_unstable();
    places.sort_unstable();
    let mut pairs = places.iter().zip(places.iter().skip(1));
    match pairs.find(|(one, other)| one.0 == other.0) {
        None => Ok(()),
        Some(((primary, one), (_, other))) => Err(ConfigError::SameShard {
            primary: primary.clone(),
            together: [*one, *other],
            slots,
        }),
    }
}

/// Checks that no two addresses lead to one server, or to one Sentinel group. A group whose primary cannot be asked now is
/// known by its sentinels.
fn different(
    nodes: &[RedisTransport],
    checks: &[Result<Checked, NodeError>],
) -> Result<(), ConfigError> {
    let id = |check: &Result<Checked, NodeError>| check.as_ref().ok()?.run_id.clone();
    let ids: Vec<_> = nodes.iter().zip(checks.iter().map(id)).collect();
    for (index, (node, id)) in ids.iter().enumerate() {
        let mut before = ids.iter().take(index);
        let is_same = |(other, others): &&(&RedisTransport, _)| {
            id.is_some() && id == others || node.is_same_group_as(other)
        };
        if let Some((other, _)) = before.find(is_same) {
            return Err(ConfigError::SameServer {
                address: other.address().to_owned(),
                other: node.address().to_owned(),
            });
        }
    }
    Ok(())
}

/// Tells which nodes the next backup will make look like another process.
fn warn_of_backups(nodes: &[RedisTransport], checks: &[Result<Checked, NodeError>]) {
    let without: Vec<_> = nodes
        .iter()
        .zip(checks)
        .filter(|(_, check)| {
            let backlog = check.as_ref().map(|checked| checked.backlog);
            backlog == Ok(Backlog::Missing)
        })
        .map(|(node, _)| node.address())
        .collect();
    if !without.is_empty() {
        telemetry::without_backlog(&without.join(", "));
    }
}

/// Tells what is legal and doubtful, each once for all the nodes that it is true of.
async fn warn_of_doubts(nodes: &[RedisTransport], prefix: &[u8]) {
    let doubts = join_all(nodes.iter().map(|node| node.doubts(prefix))).await;
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (node, doubts) in nodes.iter().zip(&doubts) {
        for doubt in doubts.iter().filter(|doubt| counts(doubt, nodes.len())) {
            let words = doubt.to_string();
            match told.iter_mut().find(|(told, _)| *told == words) {
                Some((_, addresses)) => addresses.push(node.address()),
                None => told.push((words, vec![node.address()])),
            }
        }
    }
    for (words, addresses) in &told {
        telemetry::doubtful(&addresses.join(", "), words);
    }
}

/// Whether a doubt is one where there are so many nodes. One of a majority that has forgotten its locks is noticed, and a single
/// server with replicas is what it is.
fn counts(doubt: &Doubt, nodes: usize) -> bool {
    match doubt {
        Doubt::KeepsNothing => nodes == 1,
        Doubt::HasReplicas { .. } | Doubt::NeedsFullCoverage => 1 < nodes,
        _ => true,
    }
}
