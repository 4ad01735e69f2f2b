//! Settings and how a client is made of them, with the constructors of [`Locks`].

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::RetryPolicy;
use quorlock_core::marker::Restarts;
use quorlock_core::message::Retention;
use quorlock_core::name::Name;
use quorlock_core::quorum::Threshold;
use quorlock_core::transport::Transport;

use crate::config::{Config, LONGEST_SPAN, lease_of};
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

impl Locks {
    /// Settings to begin with.
    pub fn builder() -> LocksBuilder {
        LocksBuilder::default()
    }

    /// Locks on one node, by a transport of your own, for example an [`EmbeddedNode`](crate::EmbeddedNode). Must be
    /// called inside a tokio runtime.
    ///
    /// # Errors
    /// None with the default settings; the type is that of [`LocksBuilder::on_node`].
    pub fn on_node(node: impl Transport) -> Result<Self, ConfigError> {
        Self::builder().on_node(node)
    }

    /// Locks on a majority of nodes (RedLock), by transports of your own. Must be called inside a tokio runtime.
    ///
    /// Nodes that are new to all clients are quarantined for one [`longest_lease`](LocksBuilder::longest_lease) first.
    /// Where no client can have used them before, as in a test, say so by [`LocksBuilder::trust_fresh_nodes`].
    ///
    /// # Errors
    /// [`ConfigError`] for no nodes, or one node twice.
    pub fn on_nodes<T: Transport>(nodes: impl IntoIterator<Item = T>) -> Result<Self, ConfigError> {
        Self::builder().on_nodes(nodes)
    }
}

/// Settings for [`Locks`]. Every one has a safe default.
#[derive(Clone, Debug)]
#[must_use]
pub struct LocksBuilder {
    pub(crate) watchdog_lease: Duration,
    longest_lease: Duration,
    member_timeout: Option<Duration>,
    max_hold: Option<Duration>,
    retry: RetryPolicy,
    token_retention: Option<Duration>,
    node_trust: Option<NodeTrust>,
    clock_margin: Option<Duration>,
    trusts_fresh_nodes: bool,
    key_prefix: Box<[u8]>,
    runtime: Option<Arc<dyn Runtime>>,
    #[cfg(feature = "redis")]
    pub(crate) redis: quorlock_redis::RedisConfig,
}

impl Default for LocksBuilder {
    fn default() -> Self {
        LocksBuilder {
            watchdog_lease: Duration::from_secs(30),
            longest_lease: Duration::from_secs(60),
            member_timeout: None,
            max_hold: None,
            retry: RetryPolicy::default(),
            token_retention: Some(Duration::from_secs(24 * 60 * 60)),
            node_trust: None,
            clock_margin: None,
            trusts_fresh_nodes: false,
            key_prefix: [].into(),
            runtime: None,
            #[cfg(feature = "redis")]
            redis: quorlock_redis::RedisConfig::default(),
        }
    }
}

impl LocksBuilder {
    /// No lease, margin or retention is longer than a hundred years: nodes count in milliseconds since 1970, and take no
    /// times that are much further away. Spans that only the client counts may be of any length.
    pub const LONGEST_SPAN: Duration = LONGEST_SPAN;

    /// The lease of locks without an explicit one, renewed by the watchdog every third of it. Default 30 s.
    ///
    /// It is also how long a name stays locked when its holder dies.
    pub fn watchdog_lease(mut self, lease: Duration) -> Self {
        self.watchdog_lease = lease;
        self
    }

    /// The longest lease that any client of the deployment asks for; the same for all of them. Default 60 s.
    ///
    /// It is also for how long a node is quarantined that was restarted, see [`LocksBuilder::node_trust`]; nodes that
    /// were used with another figure are an error then.
    pub fn longest_lease(mut self, longest: Duration) -> Self {
        self.longest_lease = longest;
        self
    }

    /// How long each node is given to answer in a round. Default: 5 % of the lease, but at least 25 ms (a third of the
    /// lease, if that is less).
    ///
    /// Progress is promised only while a majority answers within it.
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.member_timeout = Some(timeout);
        self
    }

    /// No lock is held longer than this, whatever the watchdog does. Default: no limit.
    pub fn max_hold(mut self, max: Duration) -> Self {
        self.max_hold = Some(max);
        self
    }

    /// When to try again after a lost or failed round.
    ///
    /// ```
    /// use quorlock::{Locks, RetryPolicy};
    /// use std::time::Duration;
    ///
    /// let patient = RetryPolicy::default()
    ///     .without_quorum(Duration::from_secs(300))
    ///     .backoff_cap(Duration::from_secs(5));
    /// let builder = Locks::builder().retry(patient);
    /// ```
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long nodes keep the token counter of a name that no client uses; `None` for ever, which is needed where
    /// Redisson's fenced lock uses the same names. Default: one day.
    ///
    /// After it has expired, the order of tokens rests on the clients' wall clocks.
    pub fn token_retention(mut self, retention: Option<Duration>) -> Self {
        self.token_retention = retention;
        self
    }

    /// Which nodes' votes count. Default: on a majority of nodes [`NodeTrust::Watched`], on one node
    /// [`NodeTrust::Unwatched`].
    ///
    /// Nodes are watched by a key of their own, the marker, which names their process. A user that asks them needs to be
    /// allowed `INFO`.
    pub fn node_trust(mut self, trust: NodeTrust) -> Self {
        self.node_trust = Some(trust);
        self
    }

    /// Trusts nodes that have no marker at all: they are taken for new, not for nodes that have forgotten everything.
    ///
    /// For nodes that surely no client has used before: embedded ones, those of a test, and at the very first start of a
    /// deployment. Without it the first lock on new nodes comes after one [`longest_lease`](Self::longest_lease).
    /// **Do not leave it on** where nodes may come back without their data.
    pub fn trust_fresh_nodes(mut self) -> Self {
        self.trusts_fresh_nodes = true;
        self
    }

    /// By how much the clock of a node may step forward without harm: nodes keep claims for so much longer than their
    /// leases. Default: on a majority of nodes one [`longest_lease`](Self::longest_lease), on one node nothing.
    ///
    /// A contender replaces the claim of a dead holder all the same one lease (and its drift allowance) after it first
    /// saw the holder's last claim version, which is kept in the claim. Clients that write no claim versions, like a JVM's,
    /// wait for the lease and the margin.
    pub fn clock_margin(mut self, margin: Duration) -> Self {
        self.clock_margin = Some(margin);
        self
    }

    /// Puts this before every name: `"app:"` locks `orders/42` under the key `app:orders/42`. Default: nothing.
    ///
    /// It comes before everything else, so the key must not be longer than a name may be, and a `{` in the prefix
    /// counts like one in the name. [`Guard::names`](crate::Guard::names) gives names as they were asked for; errors,
    /// events and inspections show keys, which is what an operator finds on the nodes.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().into();
        self
    }

    /// Where time, timers, tasks and randomness come from. Default: [`TokioRuntime`].
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    #[cfg(feature = "redis")]
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.key_prefix
    }

    /// How connections to Redis are made and bounded. Streams of bytes of your own making, as for a tunnel:
    /// [`RedisConfig::network`](quorlock_redis::RedisConfig::network).
    #[cfg(feature = "redis")]
    pub fn redis(mut self, config: quorlock_redis::RedisConfig) -> Self {
        self.redis = config;
        self
    }

    /// Locks on one node, by a transport of your own. Must be called inside a tokio runtime unless
    /// [`LocksBuilder::runtime`] was.
    ///
    /// # Errors
    /// [`ConfigError`] for settings that do not fit together.
    pub fn on_node(self, node: impl Transport) -> Result<Locks, ConfigError> {
        self.build(vec![Arc::new(node)])
    }

    /// Locks on a majority of nodes, by transports of your own. An even number of nodes is allowed and buys nothing:
    /// four tolerate one failure, as three do.
    ///
    /// # Errors
    /// [`ConfigError`] for no nodes, one node twice, or settings that do not fit together.
    pub fn on_nodes<T: Transport>(
        self,
        nodes: impl IntoIterator<Item = T>,
    ) -> Result<Locks, ConfigError> {
        let nodes = nodes
            .into_iter()
            .map(|node| Arc::new(node) as Arc<dyn Transport>);
        self.build(nodes.collect())
    }

    /// The settings, checked against each other.
    pub(crate) fn check(&self) -> Result<Config, ConfigError> {
        self.check_spans()?;
        self.check_retention(self.clock_margin.unwrap_or(Duration::ZERO))?;
        if !self.key_prefix.is_empty() {
            Name::new(&self.key_prefix).map_err(ConfigError::KeyPrefix)?;
        }
        self.check_retry()?;
        let mut config = Config {
            watchdog_lease: lease_of(LeaseSource::WatchdogLease, self.watchdog_lease)?,
            longest_lease: self.longest_lease,
            max_hold: self.max_hold,
            retry: self.retry,
            retention: self
                .token_retention
                .map_or(Retention::Forever, Retention::of),
            key_prefix: self.key_prefix.clone(),
            member_timeout: self.member_timeout,
        };
        config.watchdog_lease = config.lease_of(LeaseSource::WatchdogLease, self.watchdog_lease)?;
        Ok(config)
    }

    /// What nodes are told, they must be able to count.
    fn check_spans(&self) -> Result<(), ConfigError> {
        let told = [
            ("watchdog_lease", Some(self.watchdog_lease)),
            ("longest_lease", Some(self.longest_lease)),
            ("clock_margin", self.clock_margin),
            ("token_retention", self.token_retention),
        ];
        let most = Self::LONGEST_SPAN;
        let told = told.into_iter();
        let mut spans = told.filter_map(|(field, span)| Some((field, span?)));
        match spans.find(|(_, span)| most < *span) {
            None => Ok(()),
            Some((field, span)) => Err(ConfigError::SpanTooLong { field, span, most }),
        }
    }

    /// A token counter must outlive the claims.
    fn check_retention(&self, margin: Duration) -> Result<(), ConfigError> {
        match self.token_retention {
            Some(retention) if retention <= self.longest_lease.saturating_add(margin) => {
                Err(ConfigError::TokenRetention {
                    retention,
                    longest: self.longest_lease,
                    margin,
                })
            }
            _ => Ok(()),
        }
    }

    fn check_retry(&self) -> Result<(), ConfigError> {
        let RetryPolicy {
            backoff,
            backoff_cap,
            without_quorum,
            poll_cap,
            ..
        } = self.retry;
        let zeros = [
            (
                "member_timeout",
                self.member_timeout == Some(Duration::ZERO),
            ),
            ("retry.backoff", backoff.is_zero()),
            ("retry.without_quorum", without_quorum.is_zero()),
            ("retry.poll_cap", poll_cap.is_zero()),
        ];
        if let Some((field, _)) = zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(ConfigError::Zero { field });
        }
        if backoff_cap < backoff {
            return Err(ConfigError::Backoff {
                backoff,
                cap: backoff_cap,
            });
        }
        Ok(())
    }

    /// Which of so many nodes' votes count.
    pub(crate) fn trust_in(&self, nodes: usize) -> NodeTrust {
        let by_default = match nodes {
            1 => NodeTrust::Unwatched,
            _ => NodeTrust::Watched,
        };
        self.node_trust.unwrap_or(by_default)
    }

    pub(crate) fn build(self, mut nodes: Vec<Arc<dyn Transport>>) -> Result<Locks, ConfigError> {
        let config = self.check()?;
        nodes.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(nodes.iter().map(|node| node.address()))?;
        let runtime = self
            .runtime
            .clone()
            .unwrap_or_else(|| Arc::new(TokioRuntime::new()));
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
                trusts_fresh: self.trusts_fresh_nodes,
                restarts,
            }),
        };
        let margin = self.clock_margin.unwrap_or(match nodes.len() {
            1 => Duration::ZERO,
            _ => config.longest_lease,
        });
        self.check_retention(margin)?;
        telemetry::made();
        telemetry::built(config.doubts(nodes.len()));
        let keeper = Keeper::new();
        let party = Arc::new(Party::new(&config));
        let nodes = peers(nodes, watching, margin, keeper.alarm(), &runtime, &party);
        keeper.start(&runtime, nodes.clone());
        let queues = Arc::<Queues>::default();
        let client = Client::new(config, runtime, keeper, party, queues.clone());
        let source = LockSource::new(Arc::new(client), queues, nodes, threshold);
        Ok(Locks::new(source))
    }
}

/// Checks that there are nodes, and none twice. The addresses come in order.
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
