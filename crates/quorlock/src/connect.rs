//! Clients of real Redis servers.

use std::sync::Arc;

use futures_util::future::join_all;
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
        let mut nodes = addresses
            .into_iter()
            .map(|address| Ok(RedisTransport::open(address.as_ref(), self.redis.clone())?))
            .collect::<Result<Vec<_>, ConnectError>>()?;
        nodes.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(nodes.iter().map(|node| node.address()))?;
        self.unwatched_clusters(&nodes)?;
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

    /// Checks that no cluster is under watch: its keys lie in many slots, and a script can use those of one.
    fn unwatched_clusters(&self, nodes: &[RedisTransport]) -> Result<(), ConfigError> {
        let is_watched = self.trust_in(nodes.len()) != NodeTrust::Unwatched || 1 < nodes.len();
        match nodes.iter().find(|node| node.is_divided()) {
            Some(cluster) if is_watched => Err(ConfigError::WatchedCluster {
                address: cluster.address().to_owned(),
            }),
            _ => Ok(()),
        }
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
async fn warn_of_doubts(nodes: &[RedisTransport], prefix: &str) {
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
        Doubt::HasReplicas { .. } => 1 < nodes,
        _ => true,
    }
}
