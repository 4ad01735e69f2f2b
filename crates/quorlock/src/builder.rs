//! The settings of a client, and the constructors of [`Locks`].

mod build;
mod check;

use std::sync::Arc;
use std::time::Duration;

use quorlock_core::acquisition::RetryPolicy;
use quorlock_core::transport::Transport;

#[cfg(any(feature = "redis", feature = "store"))]
pub(crate) use self::build::distinct;
use crate::config::LONGEST_SPAN;
use crate::error::ConfigError;
use crate::locks::Locks;
#[cfg(feature = "metrics")]
use crate::metrics::NameLabels;
use crate::runtime::Runtime;
use crate::shared::trust::NodeTrust;

impl Locks {
    /// Returns a builder with the default settings.
    pub fn builder() -> LocksBuilder {
        LocksBuilder::default()
    }

    /// Creates a client of one node with a custom transport, for example an [`EmbeddedNode`](crate::EmbeddedNode).
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::{EmbeddedNode, Locks};
    ///
    /// let node = EmbeddedNode::new();
    /// let one = Locks::on_node(node.clone())?;
    /// let other = Locks::on_node(node)?; // another client, as in another process
    /// let guard = one.lock("orders/42").acquire().await?;
    /// assert!(other.lock("orders/42").try_acquire().await?.is_none());
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Never fails with the default settings. Other settings can be invalid, see [`LocksBuilder::on_node`].
    pub fn on_node(node: impl Transport) -> Result<Self, ConfigError> {
        Self::builder().on_node(node)
    }

    /// Creates a client of a majority of nodes (RedLock) with custom transports.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// Nodes without a marker are quarantined for one [`longest_lease`](LocksBuilder::longest_lease) before their
    /// votes count. [`LocksBuilder::trust_fresh_nodes`] skips this where no client can have used them before, as in a
    /// test.
    ///
    /// # Errors
    /// [`ConfigError`] if there are no nodes, or if a node is given twice.
    pub fn on_nodes<T: Transport>(nodes: impl IntoIterator<Item = T>) -> Result<Self, ConfigError> {
        Self::builder().on_nodes(nodes)
    }
}

/// The longest lease of a client that does not set one.
const LONGEST_LEASE: Duration = Duration::from_secs(60);

/// Whether a client probes its nodes.
#[derive(Clone, Copy, Debug)]
enum Probes {
    Sent,
    /// The client only makes operators' requests.
    Omitted,
}

/// Settings for [`Locks`]. Every setting has a safe default.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use quorlock::{EmbeddedNode, Locks};
///
/// let builder = Locks::builder()
///     .watchdog_lease(Duration::from_secs(10)) // renewed every third of it
///     .max_hold(Duration::from_secs(3600)) // no hold is longer
///     .key_prefix("shop:");
/// let locks = builder.on_node(EmbeddedNode::new())?; // or .connect(address).await?
/// locks.lock("orders/42").acquire().await?.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LocksBuilder {
    pub(crate) watchdog_lease: Duration,
    longest_lease: Option<Duration>,
    member_timeout: Option<Duration>,
    max_hold: Option<Duration>,
    retry: RetryPolicy,
    token_retention: Option<Duration>,
    node_trust: Option<NodeTrust>,
    clock_margin: Option<Duration>,
    trusts_fresh_nodes: bool,
    probes: Probes,
    pub(crate) label: Option<String>,
    /// The random part of the client's identity, once it is drawn: only when this builder makes its client.
    pub(crate) identity: Option<u128>,
    pub(crate) watches_claims: bool,
    namespace: Box<[u8]>,
    key_prefix: Box<[u8]>,
    #[cfg(feature = "metrics")]
    name_labels: Option<Arc<NameLabels>>,
    runtime: Option<Arc<dyn Runtime>>,
    #[cfg(any(feature = "redis", feature = "store"))]
    pub(crate) patience: Duration,
    #[cfg(feature = "redis")]
    pub(crate) redis: quorlock_redis::RedisConfig,
}

impl Default for LocksBuilder {
    fn default() -> Self {
        LocksBuilder {
            watchdog_lease: Duration::from_secs(30),
            longest_lease: None,
            member_timeout: None,
            max_hold: None,
            retry: RetryPolicy::default(),
            token_retention: Some(Duration::from_secs(24 * 60 * 60)),
            node_trust: None,
            clock_margin: None,
            trusts_fresh_nodes: false,
            probes: Probes::Sent,
            label: None,
            identity: None,
            watches_claims: true,
            namespace: [].into(),
            key_prefix: [].into(),
            #[cfg(feature = "metrics")]
            name_labels: None,
            runtime: None,
            #[cfg(any(feature = "redis", feature = "store"))]
            patience: Duration::ZERO,
            #[cfg(feature = "redis")]
            redis: quorlock_redis::RedisConfig::default(),
        }
    }
}

impl LocksBuilder {
    /// The upper bound on leases, margins and retentions: a hundred years.
    ///
    /// Nodes count in milliseconds since 1970 and reject times that are much further away. The bound does not apply
    /// to time spans that only the client measures.
    pub const LONGEST_SPAN: Duration = LONGEST_SPAN;

    /// Sets the lease of locks without an explicit one. Default: 30 s.
    ///
    /// The watchdog renews the lease each time a third of it has passed. When a holder dies, the name stays locked
    /// until the lease expires.
    pub fn watchdog_lease(mut self, lease: Duration) -> Self {
        self.watchdog_lease = lease;
        self
    }

    /// Sets the longest lease that the client requests. Default: 60 s, or less where nodes grant less.
    ///
    /// A restarted node is quarantined for the largest value of all clients (see [`LocksBuilder::node_trust`]). It can
    /// be changed in a rolling deployment: clients with a smaller value lock at once, and clients with a larger one do,
    /// too, with leases up to the old value. They get longer ones when all nodes are up and one old longest lease has
    /// passed. A client that does not set it makes no node grant more.
    pub fn longest_lease(mut self, longest: Duration) -> Self {
        self.longest_lease = Some(longest);
        self
    }

    /// Sets how long each node has to answer in a round.
    ///
    /// Default: 5 % of the lease, but at least the smaller of 25 ms and a third of the lease. Progress is promised
    /// only while a majority answers within this time.
    pub fn member_timeout(mut self, timeout: Duration) -> Self {
        self.member_timeout = Some(timeout);
        self
    }

    /// Sets the maximum time for which a lock is held, even if the watchdog could renew it for longer. Default:
    /// no limit.
    pub fn max_hold(mut self, max: Duration) -> Self {
        self.max_hold = Some(max);
        self
    }

    /// Sets when to try again after a lost or failed round, and when to give up.
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

    /// Sets how long nodes keep the token counter of an unused name. Default: one day.
    ///
    /// `None` keeps it for ever, which is required where Redisson's fenced lock uses the same names. After a counter
    /// has expired, the order of tokens depends on the clients' wall clocks.
    pub fn token_retention(mut self, retention: Option<Duration>) -> Self {
        self.token_retention = retention;
        self
    }

    /// Sets which nodes' votes count.
    ///
    /// Default: [`NodeTrust::Watched`] on a majority of nodes, [`NodeTrust::Unwatched`] on one node.
    ///
    /// A watched node stores one more key, the marker, which identifies its process. The Redis user must be allowed
    /// to run `INFO`. The client keeps a connection to each watched node, and probes a node that it does not use
    /// within half a [`longest_lease`](Self::longest_lease), until it is closed or dropped.
    pub fn node_trust(mut self, trust: NodeTrust) -> Self {
        self.node_trust = Some(trust);
        self
    }

    /// Trusts nodes without a marker immediately: they are assumed to be new, not to have lost their data.
    ///
    /// Use it only for nodes that no client has used before: embedded nodes, the nodes of a test, and the very first
    /// start of a deployment. Without it the first lock on new nodes is granted one
    /// [`longest_lease`](Self::longest_lease) after the first client was made. **Do not leave it on** where nodes may restart without their data.
    pub fn trust_fresh_nodes(mut self) -> Self {
        self.trusts_fresh_nodes = true;
        self
    }

    /// Makes a client for [`Locks::inspect`], [`Locks::force_release`] and a single try: it does not begin to watch nodes.
    ///
    /// A probe may write a marker with this client's longest lease. An operator's tool need not know that of the
    /// deployment, and must not set another one on a node that was just restarted.
    #[doc(hidden)]
    pub fn for_operators(mut self) -> Self {
        self.probes = Probes::Omitted;
        self
    }

    /// Sets how far a node's clock may step forward without breaking a lock: nodes keep each claim for its lease and
    /// this margin.
    ///
    /// Default: one [`longest_lease`](Self::longest_lease) on a majority of nodes, zero on one node.
    ///
    /// The margin does not delay a contender that was already waiting when the holder died. Such a contender replaces
    /// the claim one lease and its drift allowance after it first saw the last claim version, which is stored in the
    /// claim. Clients that write no claim versions, such as Redisson, wait for the lease and the margin.
    pub fn clock_margin(mut self, margin: Duration) -> Self {
        self.clock_margin = Some(margin);
        self
    }

    /// Sets a prefix for the key of every name: with `"app:"` the name `orders/42` is locked under the key
    /// `app:orders/42`. Default: empty.
    ///
    /// The prefix is the first part of the key. Prefix and name together must therefore not exceed the maximum
    /// length of a name, and a `{` in the prefix counts like one in the name.
    /// [`Guard::names`](crate::Guard::names) returns names without the prefix. Errors, events and inspections show
    /// keys, because operators find keys on the nodes.
    pub fn key_prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.key_prefix = prefix.as_ref().into();
        self
    }

    /// Sets a label, by which people recognize this client: a host, a process, a pod. Default: none.
    ///
    /// [`Locks::inspect`](crate::Locks::inspect) and the command show it, with the client's address, beside the owner of a claim while
    /// the client is connected. It is the name of the client's connections, `quorlock:<label>:<uuid>` in `CLIENT LIST` of a Redis
    /// server; nothing is stored. The user needs `+client|setname`, and to see it `+client|list`; without these rights there is no
    /// label. It has 1 to 100 printable ASCII characters, without spaces.
    ///
    /// A client with a label also names those that others have: [`AcquireError::Contended`](crate::AcquireError::Contended) tells which
    /// clients hold the lock. It asks for them once at the end of a wait, at most once in a second, and for at most a tenth of the wait
    /// or 100 ms, whichever is longer; the server makes a list of its connections.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets whether a hold that has lasted for 20 ms learns at once that its claim was removed by others: released by force,
    /// deleted, flushed, evicted, or expired early. Default: true. Otherwise it learns it by its next renewal, and with a
    /// [`Lock::lease`](crate::Lock::lease) not before the lease ends.
    ///
    /// A Redis server (6 and newer) tells it on the connection for wake-ups, which a client then has while it holds something, and
    /// executes two small commands for each renewal. The user needs `+client|tracking +client|caching +hexists`; without
    /// these rights, on stores, and for holds of more than 1,000 names and the holds of a client that has more than 1,000, nothing is
    /// told. If the server is not reached, the loss is noticed as before.
    pub fn watch_claims(mut self, watch: bool) -> Self {
        self.watches_claims = watch;
        self
    }

    /// Sets the namespace: every key and channel of this client on a Redis server begins with it, also those that are derived
    /// from a name, and the marker of a watched node. Default: empty.
    ///
    /// So a user of the server needs one rule for keys and one for channels: with `"shop:"`, `~shop:* &shop:*`. The name
    /// `orders/42` is locked under the key `shop:orders/42`, and its counter is `shop:redisson_lock_token:{shop:orders/42}`.
    /// All clients of a name must use the same namespace: with another one the key of the claim may be the same, but
    /// not the counter of the tokens. Redisson has no namespaces: a [`key_prefix`](Self::key_prefix) leaves its keys
    /// where it looks for them.
    ///
    /// A namespace has no braces, because these choose the slot of a name in a cluster. A key prefix follows it. On other
    /// stores a name is one key, which begins with the namespace.
    pub fn namespace(mut self, namespace: impl AsRef<[u8]>) -> Self {
        self.namespace = namespace.as_ref().into();
        self
    }

    /// Adds the label `name` to the metrics of waits, holds, refused rounds and losses. Feature `metrics`. Default: no such label.
    ///
    /// The function makes the label from a name, without the key prefix: names with the same label are
    /// counted together, as with [`without_ids`](crate::metrics::without_ids). At most `most` labels are used, and every further
    /// one is [`OTHER`](crate::metrics::OTHER), so that a mistake in the function cannot flood the metrics. A lock of several names
    /// has the label of each, joined by ` + `. The function is called in each acquisition and must not block.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::{EmbeddedNode, Locks, metrics};
    ///
    /// let builder = Locks::builder().metrics_by_name(100, metrics::without_ids);
    /// let locks = builder.on_node(EmbeddedNode::new())?;
    /// locks.lock("orders/42").acquire().await?; // quorlock_wait_seconds{outcome="acquired",name="orders/{id}"}
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "metrics")]
    pub fn metrics_by_name(
        mut self,
        most: usize,
        normalize: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.name_labels = Some(Arc::new(NameLabels::new(most, normalize)));
        self
    }

    /// Sets the source of time, timers, tasks and randomness. Default: [`TokioRuntime`](crate::runtime::TokioRuntime).
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    #[cfg(feature = "redis")]
    pub(crate) fn prefix(&self) -> Vec<u8> {
        [self.whole_namespace(), &*self.key_prefix].concat()
    }

    /// The namespace of the client, which may have been set for its connections alone.
    pub(crate) fn whole_namespace(&self) -> &[u8] {
        #[cfg(feature = "redis")]
        if self.namespace.is_empty() {
            return self.redis.chosen_namespace();
        }
        &self.namespace
    }

    /// Sets how connections to Redis are made and bounded.
    ///
    /// For a custom byte stream, such as a tunnel, see
    /// [`RedisConfig::network`](quorlock_redis::RedisConfig::network).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use quorlock::Locks;
    /// use quorlock::redis::RedisConfig;
    ///
    /// let redis = RedisConfig::default()
    ///     .connect_timeout(Duration::from_millis(300))
    ///     .call_timeout(Duration::from_secs(1));
    /// let builder = Locks::builder().redis(redis);
    /// # drop(builder);
    /// ```
    #[cfg(feature = "redis")]
    pub fn redis(mut self, config: quorlock_redis::RedisConfig) -> Self {
        self.redis = config;
        self
    }

    /// Sets what hears doubts about servers that replies raise, in addition to the settings of [`LocksBuilder::redis`].
    #[cfg(feature = "redis")]
    #[doc(hidden)]
    pub fn on_doubt(
        mut self,
        hear: impl Fn(&str, &quorlock_redis::Doubt) + Send + Sync + 'static,
    ) -> Self {
        self.redis = self.redis.on_doubt(hear);
        self
    }
}
