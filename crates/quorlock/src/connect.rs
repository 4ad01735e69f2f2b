//! Clients of real Redis servers: the constructors of [`Locks`] that take addresses.

use std::sync::Arc;

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::quorum::Threshold;
use quorlock_core::transport::Transport;
use quorlock_redis::{
    Backlog, Checked, ConnectError as NodeError, Doubt, RedisClient, RedisConfig, RedisTransport,
};

use crate::builder::{LocksBuilder, distinct};
use crate::error::{ConfigError, ConnectError};
use crate::locks::Locks;
use crate::shared::trust::NodeTrust;
use crate::telemetry;

impl Locks {
    /// Connects to one Redis server: `redis://[user[:password]@]host[:port][/db]` or `unix:///path`.
    ///
    /// Special characters of a user or a password are percent-encoded (`%23` for `#`). A part of an address that has no
    /// meaning here, such as a parameter of another library, is an error and not ignored.
    ///
    /// `redis+sentinel://[user[:password]@]host[:port][,host[:port]..]/name[/db]` locks on the current primary of a
    /// Sentinel group. `redis+cluster://[user[:password]@]host[:port][,host[:port]..]` locks on a Redis Cluster, each
    /// name on the node that owns its slot. A failover may lose a claim that the new primary has not received, and
    /// the lock is then granted twice; see [`RedisConfig::wait`](quorlock_redis::RedisConfig::wait), and
    /// [`Locks::quorum`] of several groups.
    ///
    /// # Errors
    /// [`ConnectError`] with the reason, if the server cannot be used.
    pub async fn connect(address: impl AsRef<str>) -> Result<Self, ConnectError> {
        Self::builder().connect(address).await
    }

    /// Connects to a majority of independent Redis servers (RedLock).
    ///
    /// The servers must not replicate each other. Sentinel groups and clusters can be members like servers, in any
    /// mixture, as each fails independently. Of a cluster one shard is used, under a tag; for a majority of its
    /// shards see [`Locks::majority_of_shards`].
    ///
    /// A minority may be down while connecting; it is used when it comes up. An even number is allowed but gains
    /// nothing: four tolerate one failure, as three do.
    ///
    /// Servers without a marker are quarantined for one [`longest_lease`](LocksBuilder::longest_lease), a minute by
    /// default. The first lock on new servers is granted that long after the first client has connected, unless
    /// [`LocksBuilder::trust_fresh_nodes`] was called. The client watches the servers in the background from then on,
    /// whether or not a lock is used.
    ///
    /// # Errors
    /// [`ConnectError`] if too few servers can be used, one of them is not a primary Redis server that accepts the
    /// login, or two addresses lead to the same server. Only servers that answer are compared. A server whose user is
    /// not allowed to run `INFO` is not compared either.
    pub async fn quorum<A: AsRef<str>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, ConnectError> {
        Self::builder().quorum(addresses).await
    }

    /// Connects to a majority of the shards of one Redis Cluster.
    ///
    /// The address is `redis+cluster://[user[:password]@]host[:port][,host[:port]..]`. The number of shards must be
    /// odd, at least three, and no larger than the number of primaries.
    ///
    /// Each name is locked on that many primaries, under a tag on each. While any minority of those shards fails
    /// over, locks stay held and others are granted. A promoted replica that has not received a claim does not give
    /// the lock away: its votes do not count for one [`longest_lease`](LocksBuilder::longest_lease). Set
    /// `cluster-require-full-coverage no`, or all shards stop serving while one has no primary.
    ///
    /// All clients of the names must use the same number of shards. A name must not contain a tag.
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
    /// Those of [`Locks::quorum`], and [`ConnectError::Config`] for an invalid number of shards
    /// ([`ConfigError::ShardCount`], [`ConfigError::TooFewPrimaries`]), an address that leads to no cluster
    /// ([`ConfigError::NoCluster`]), and two shards on one primary ([`ConfigError::SameShard`]).
    pub async fn majority_of_shards(
        address: impl AsRef<str>,
        shards: usize,
    ) -> Result<Self, ConnectError> {
        Self::builder().majority_of_shards(address, shards).await
    }
}

impl LocksBuilder {
    /// Like [`Locks::connect`], with these settings.
    ///
    /// # Errors
    /// Those of [`Locks::connect`], and [`ConnectError::Config`].
    pub async fn connect(self, address: impl AsRef<str>) -> Result<Locks, ConnectError> {
        self.quorum([address]).await
    }

    /// Like [`Locks::quorum`], with these settings.
    ///
    /// # Errors
    /// Those of [`Locks::quorum`], and [`ConnectError::Config`].
    pub async fn quorum<A: AsRef<str>>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Locks, ConnectError> {
        self.check()?;
        let nodes = self.transports(addresses)?;
        self.join(nodes).await
    }

    /// Returns the members at these addresses, as [`LocksBuilder::quorum`] uses them. Sends nothing yet.
    ///
    /// # Errors
    /// [`ConnectError`] for an address that does not parse, and for a cluster that cannot be a member.
    #[doc(hidden)]
    pub fn transports<A: AsRef<str>>(
        &self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Vec<RedisTransport>, ConnectError> {
        let nodes = addresses
            .into_iter()
            .map(|address| Ok(RedisTransport::open(address.as_ref(), self.redis_config())?))
            .collect::<Result<Vec<_>, ConnectError>>()?;
        Ok(self.members(nodes)?)
    }

    /// The settings of transports. Doubts that their replies raise are reported as events, unless the user hears them.
    fn redis_config(&self) -> RedisConfig {
        let config = self.redis.clone().prefix(self.prefix());
        if config.hears_doubts() || !telemetry::hears_of_doubts() {
            return config;
        }
        config.on_doubt(|address, doubt| telemetry::doubtful(address, doubt))
    }

    /// Like [`Locks::majority_of_shards`], with these settings.
    ///
    /// # Errors
    /// Those of [`Locks::majority_of_shards`], [`ConnectError::Config`], and [`ConfigError::ClusterTrust`] if
    /// [`node_trust`](LocksBuilder::node_trust) is set to another value than [`NodeTrust::Watched`].
    pub async fn majority_of_shards(
        self,
        address: impl AsRef<str>,
        shards: usize,
    ) -> Result<Locks, ConnectError> {
        self.check()?;
        if shards < 3 || shards.is_multiple_of(2) {
            return Err(ConfigError::ShardCount { shards }.into());
        }
        let cluster = RedisTransport::open(address.as_ref(), self.redis_config())?;
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

    /// Converts the nodes at these addresses to members. Of a cluster among several members one shard is used: only
    /// the keys of a single slot are all on one process, which can be watched and whose marker scripts can read.
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

    /// Checks that a cluster in a majority is watched: replicas replace its primaries, and slots move between them.
    fn trusts_as_cluster(&self, cluster: &RedisTransport, of: usize) -> Result<(), ConfigError> {
        match self.trust_in(of) {
            NodeTrust::Watched => Ok(()),
            trust => Err(ConfigError::ClusterTrust {
                address: cluster.address().to_owned(),
                trust: format!("{trust:?}"),
            }),
        }
    }

    /// Makes a client of these nodes, if enough of them are usable.
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

    /// Warns if a call may take longer than half of a lease, because no time is left then to retry on another
    /// connection. The default is exempt, because a client with short leases would be warned about a setting that
    /// it has not made.
    fn doubt_call_timeout(&self) {
        let lease = self.watchdog_lease;
        let bound = self.redis.chosen_call_bound();
        let doubt = bound.filter(|bound| lease / 2 < *bound).map(|bound| {
            format!("call_timeout, {bound:?}, is more than half of watchdog_lease, {lease:?}: a connection that breaks may cost the lock")
        });
        telemetry::built(doubt.into_iter());
    }

    /// Creates a client of one server from an existing client of the `redis` crate, in the version of
    /// [`RedisClient`](crate::redis::RedisClient).
    ///
    /// The client's addresses, credentials and database are used, over separate connections: a lock request must
    /// neither wait behind other commands nor be resent automatically. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ConnectError`] if the address is not supported, or settings do not fit together.
    pub fn from_redis_client(self, client: &RedisClient) -> Result<Locks, ConnectError> {
        let node = RedisTransport::from_redis_client(client, self.redis_config())?;
        self.doubt_call_timeout();
        Ok(self.build(vec![Arc::new(node)])?)
    }
}

/// Checks that the slots of all shards are on different primaries. A slot without an owner is reported by its shard's
/// check.
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

/// Checks that no two addresses lead to one server or to one Sentinel group. A group whose primary does not answer is
/// identified by its sentinels.
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

/// Warns about nodes that will look like another process after the next backup.
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

/// Warns about what is legal but doubtful, once per doubt, with all the nodes to which it applies.
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

/// Whether a doubt matters with this many nodes. A majority notices a node that lost its locks, so missing
/// persistence does not matter there. A single server may have replicas on purpose.
fn counts(doubt: &Doubt, nodes: usize) -> bool {
    match doubt {
        Doubt::KeepsNothing => nodes == 1,
        Doubt::HasReplicas { .. } | Doubt::NeedsFullCoverage => 1 < nodes,
        _ => true,
    }
}
