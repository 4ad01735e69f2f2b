//! What is particular to Redis: shards of a cluster, clients of the `redis` crate, and doubts about servers.

#[cfg(feature = "redis-connections")]
use std::sync::Arc;

use futures_util::future::join_all;
use quorlock_core::name::Name;
use quorlock_core::owner::ClientId;
use quorlock_core::quorum::Threshold;
use quorlock_core::transport::Transport as _;
#[cfg(feature = "redis-connections")]
use quorlock_redis::RedisClient;
use quorlock_redis::{Backlog, Doubt, RedisConfig, RedisTransport};

use super::member::{Checked, Member};
use crate::builder::LocksBuilder;
use crate::error::{ConfigError, ConnectError, NodeProblem};
use crate::locks::Locks;
use crate::shared::trust::NodeTrust;
use crate::telemetry;

impl Locks {
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
    /// The name of the connections of this client.
    fn connection_name(&self) -> Option<String> {
        let (label, bits) = (self.label.as_ref()?, self.identity?);
        Some(format!("quorlock:{label}:{}", ClientId::from_random(bits)))
    }

    /// The settings of transports. Doubts that their replies raise are reported as events, unless the user hears them.
    fn redis_config(&self) -> RedisConfig {
        let config = self.redis.clone().prefix(&self.prefix());
        let config = config.namespace(self.whole_namespace());
        let config = config.watch_claims(self.watches_claims);
        let config = config.client_name(self.connection_name());
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
        let this = self.identified();
        if shards < 3 || shards.is_multiple_of(2) {
            return Err(ConfigError::ShardCount { shards }.into());
        }
        let cluster = RedisTransport::open(address.as_ref(), this.redis_config())?;
        let address = || cluster.address().to_owned();
        if !cluster.is_divided() {
            return Err(ConfigError::NoCluster { address: address() }.into());
        }
        this.trusts_as_cluster(&cluster, shards)?;
        let found = cluster.primaries().await;
        let primaries = found.map_err(|problem| ConnectError::Nodes {
            reachable: 0,
            needed: Threshold::majority(shards).needed(),
            of: shards,
            problems: vec![NodeProblem::Redis(problem)],
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
        let nodes = nodes.into_iter().map(Member::Redis);
        this.join(nodes.collect()).await
    }

    /// Returns the member at an address, as one of this many. Of a cluster among several members one shard is used: only
    /// the keys of a single slot are all on one process, which can be watched and whose marker scripts can read.
    pub(super) fn redis_member(
        &self,
        address: &str,
        of: usize,
    ) -> Result<RedisTransport, ConnectError> {
        let node = RedisTransport::open(address, self.redis_config())?;
        match node.shard(0, 1) {
            None => Ok(node),
            Some(_) if of == 1 && self.trust_in(of) == NodeTrust::Unwatched => Ok(node),
            Some(_) if of == 1 => Err(ConfigError::WatchedCluster {
                address: node.address().to_owned(),
            }
            .into()),
            Some(shard) => {
                self.trusts_as_cluster(&node, of)?;
                Ok(shard)
            }
        }
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

    /// Warns if a call may take longer than half of a lease, because no time is left then to retry on another
    /// connection. The default is exempt, because a client with short leases would be warned about a setting that
    /// it has not made.
    pub(super) fn doubt_call_timeout(&self) {
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
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::Locks;
    /// use quorlock::redis::RedisClient;
    ///
    /// let client = RedisClient::open("redis://127.0.0.1/")?; // of the crate `redis`
    /// let locks = Locks::builder().from_redis_client(&client)?;
    /// # drop(locks);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] if the address is not supported, or settings do not fit together.
    #[cfg(feature = "redis-connections")]
    pub fn from_redis_client(self, client: &RedisClient) -> Result<Locks, ConnectError> {
        let this = self.identified();
        let node = RedisTransport::from_redis_client(client, this.redis_config())?;
        this.doubt_call_timeout();
        Ok(this.build(vec![Arc::new(node)])?)
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

/// Tells which nodes will look like another process after the next backup. A majority of three or more grants locks while one node
/// is quarantined, so there a backup does no harm unless it is of all nodes at once.
pub(super) fn warn_of_backups(nodes: &[Member], checks: &[Result<Checked, NodeProblem>]) {
    let is_without = |check: &Result<Checked, NodeProblem>| match check {
        Ok(Checked::Redis(checked)) => checked.backlog == Backlog::Missing,
        _ => false,
    };
    let checked = nodes.iter().zip(checks);
    let without = checked.filter(|(_, check)| is_without(check));
    let without: Vec<_> = without.map(|(node, _)| node.address()).collect();
    if !without.is_empty() {
        let one_ends_all = nodes.len() - 1 < Threshold::majority(nodes.len()).needed();
        telemetry::without_backlog(&without.join(", "), one_ends_all);
    }
}

/// Warns about what is legal but doubtful, once per doubt, with all the nodes to which it applies.
pub(super) async fn warn_of_doubts(nodes: &[Member], prefix: &[u8]) {
    if !telemetry::hears_of_doubts() {
        return;
    }
    let of = nodes.len();
    let servers = nodes.iter().flat_map(|node| match node {
        Member::Redis(node) => Some(node),
        #[cfg(feature = "store")]
        Member::Store(_) => None,
    });
    let asked = servers.map(async |node| (node.address(), node.doubts(prefix).await));
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (address, doubts) in join_all(asked).await {
        for doubt in doubts.iter().filter(|doubt| counts(doubt, of)) {
            let words = doubt.to_string();
            match told.iter_mut().find(|(told, _)| *told == words) {
                Some((_, addresses)) => addresses.push(address),
                None => told.push((words, vec![address])),
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
