//! Makes a client from its settings and nodes.

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::marker::Restarts;
use quorlock_core::quorum::Threshold;
use quorlock_core::transport::Transport;

use super::{LONGEST_LEASE, LocksBuilder, Probes};
use crate::config::lease_of;
use crate::error::{ConfigError, LeaseSource};
use crate::locks::Locks;
use crate::locks::source::LockSource;
use crate::operation::queue::Queues;
use crate::runtime::{Runtime, TokioRuntime};
use crate::shared::client::Client;
use crate::shared::keeper::Keeper;
use crate::shared::party::Party;
use crate::shared::trust::{NodeTrust, Watching, peers};
use crate::telemetry;

impl LocksBuilder {
    /// Creates a client of one node with a custom transport.
    ///
    /// Must be called inside a tokio runtime unless [`LocksBuilder::runtime`] is set.
    ///
    /// # Errors
    /// [`ConfigError`] if settings do not fit together.
    pub fn on_node(self, node: impl Transport) -> Result<Locks, ConfigError> {
        self.build(vec![Arc::new(node)])
    }

    /// Creates a client of a majority of nodes with custom transports.
    ///
    /// An even number of nodes is allowed but gains nothing: four tolerate one failure, as three do.
    ///
    /// # Errors
    /// [`ConfigError`] if there are no nodes, a node is given twice, or settings do not fit together.
    pub fn on_nodes<T: Transport>(
        self,
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<Locks, ConfigError> {
        let nodes = nodes
            .into_iter()
            .map(|node| Arc::new(node) as Arc<dyn Transport>);
        self.build(nodes.collect())
    }

    /// The trust policy for a client of this many nodes.
    pub(crate) fn trust_in(&self, nodes: usize) -> NodeTrust {
        let by_default = match nodes {
            1 => NodeTrust::Unwatched,
            _ => NodeTrust::Watched,
        };
        self.node_trust.unwrap_or(by_default)
    }

    /// The longest lease that was set, or the default.
    pub(super) fn longest(&self) -> Duration {
        self.longest_lease.unwrap_or(LONGEST_LEASE)
    }

    /// The clock margin for a client of this many nodes.
    pub(crate) fn margin_on(&self, nodes: usize) -> Duration {
        self.clock_margin.unwrap_or(match nodes {
            1 => Duration::ZERO,
            _ => self.longest(),
        })
    }

    /// Returns the runtime that was set, or that of tokio.
    pub(crate) fn chosen_runtime(&self) -> Arc<dyn Runtime> {
        let chosen = self.runtime.clone();
        chosen.unwrap_or_else(|| Arc::new(TokioRuntime::new()))
    }

    pub(crate) fn build(self, mut nodes: Vec<Arc<dyn Transport>>) -> Result<Locks, ConfigError> {
        let config = self.check()?;
        // First-member order: all clients must agree on the first member. If A asked node 1 first and B node 3, both
        // would win their first member and split the votes again.
        nodes.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(nodes.iter().map(|node| node.address()))?;
        let runtime = self.chosen_runtime();
        let threshold = Threshold::majority(nodes.len());
        let restarts = match self.trust_in(nodes.len()) {
            NodeTrust::Unwatched => None,
            NodeTrust::Watched => Some(Restarts::MayForget),
            NodeTrust::AssertedDurable => Some(Restarts::KeepEverything),
        };
        let watching = match restarts {
            None => None,
            Some(restarts) => Some(Watching {
                longest: lease_of(LeaseSource::WatchdogLease, config.longest_lease)?,
                raises: self.longest_lease.is_some(),
                trusts_fresh: self.trusts_fresh_nodes,
                restarts,
            }),
        };
        let margin = self.margin_on(nodes.len());
        self.check_retention(margin)?;
        telemetry::made();
        telemetry::built(config.doubts(nodes.len()));
        let keeper = Keeper::new();
        let party = Arc::new(Party::new(&config));
        let nodes = peers(nodes, watching, margin, keeper.alarm(), &runtime, &party);
        let probed = match self.probes {
            Probes::Sent => nodes.clone(),
            Probes::Omitted => [].into(),
        };
        keeper.start(&runtime, probed);
        let queues = Arc::<Queues>::default();
        let client = Client::new(config, runtime, keeper, party, queues.clone());
        let source = LockSource::new(Arc::new(client), queues, nodes, threshold);
        Ok(Locks::new(source))
    }
}

/// Checks that there is at least one node and that none is given twice. The addresses must be sorted.
pub(crate) fn distinct<'a>(
    addresses: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), ConfigError> {
    if addresses.clone().next().is_none() {
        return Err(ConfigError::NoNodes);
    }
    let mut twice = addresses.clone().zip(addresses.skip(1));
    match twice.find(|(a, b)| a == b) {
        None => Ok(()),
        Some((address, _)) => Err(ConfigError::SameNode {
            address: address.to_owned(),
        }),
    }
}
