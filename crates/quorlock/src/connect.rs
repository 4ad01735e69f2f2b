//! Clients of real servers and stores: the constructors of [`Locks`] that take addresses.

mod examine;
mod member;
#[cfg(feature = "redis")]
mod redis;
mod store;

use std::future::poll_fn;
use std::time::Duration;

use futures_util::future::join_all;
use quorlock_core::quorum::Threshold;

use self::member::{Checked, Member, Scanned};
use crate::builder::{LocksBuilder, distinct};
use crate::error::{ConfigError, ConnectError, NodeProblem};
use crate::locks::Locks;
use crate::shared::client::draw_identity;
#[cfg(feature = "redis")]
use crate::shared::trust::NodeTrust;

/// The pause before servers are tried a second time. It doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Locks {
    /// Connects to one Redis server: `redis://[user[:password]@]host[:port][/db]` or `unix:///path`; or to a store:
    /// `postgres://user:password@host[:port]/database`, the same with `mysql://`, `sqlite:/path/of/the/file`,
    /// `etcd://[user:password@]host[:port][,host[:port]..][/prefix]`, the same with `zk://`,
    /// `mongodb://[user:password@]host[:port][,host[:port]..]/database`, or
    /// `s3://bucket[/prefix][?endpoint=http://host:port][&region=name]`, with the cargo features `postgres`, `mysql`, `sqlite`, `etcd`,
    /// `zookeeper`, `mongodb` and `s3`. A database needs a table ([`Locks::init`]).
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
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::Locks;
    ///
    /// let locks = Locks::connect("redis://127.0.0.1/").await?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] with the reason, if the server cannot be used.
    pub async fn connect(address: impl AsRef<str>) -> Result<Self, ConnectError> {
        Self::builder().connect(address).await
    }

    /// Connects to a majority of independent Redis servers (RedLock).
    ///
    /// The servers must not replicate each other. Sentinel groups, clusters and stores can be members like servers, in any
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
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::Locks;
    ///
    /// // New servers grant their first lock a minute after the first client has connected.
    /// let locks = Locks::quorum(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"]).await?;
    /// let guard = locks.lock("orders/42").acquire().await?; // waits for that minute, too
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] if too few servers can be used, one of them is not a primary server that accepts the
    /// login, or two addresses lead to the same server. Only servers that answer are compared. A server whose user is
    /// not allowed to run `INFO` is not compared either.
    pub async fn quorum<A: AsRef<str>>(
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Self, ConnectError> {
        Self::builder().quorum(addresses).await
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
        let this = self.identified();
        let nodes = this.members(addresses)?;
        this.join(nodes).await
    }

    /// Sets how long [`LocksBuilder::connect`] and [`LocksBuilder::quorum`] wait for servers that cannot be reached. Default: not at
    /// all.
    ///
    /// Meanwhile they try again, after pauses of 50 ms to 1 s. Failures that waiting does not cure, such as a refused login, are
    /// returned at once.
    ///
    /// ```no_run
    /// # async fn start() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use quorlock::Locks;
    ///
    /// // Servers and services may be started in any order.
    /// let builder = Locks::builder().wait_for_servers(Duration::from_secs(60));
    /// let locks = builder.connect("redis://127.0.0.1/").await?;
    /// # drop(locks);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_for_servers(mut self, at_most: Duration) -> Self {
        self.patience = at_most;
        self
    }

    /// Like [`LocksBuilder::connect`], but sends nothing: the connection is made for the first lock.
    ///
    /// What connecting would report is reported by the first acquisition instead, or by [`Locks::ready`]. Must be called inside a
    /// tokio runtime.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use quorlock::{ErrorKind, Locks};
    ///
    /// // Nothing listens there yet.
    /// let locks = Locks::builder().connect_lazy("redis://127.0.0.1:1/")?;
    /// assert_eq!(locks.ready().await.unwrap_err().kind(), ErrorKind::Unavailable);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConnectError`] if the address or the settings are invalid.
    pub fn connect_lazy(self, address: impl AsRef<str>) -> Result<Locks, ConnectError> {
        self.quorum_lazy([address])
    }

    /// Like [`LocksBuilder::quorum`], but sends nothing. See [`LocksBuilder::connect_lazy`].
    ///
    /// Nothing compares the servers: two addresses of one server are noticed when a lock is acquired, and only if the servers are watched.
    ///
    /// # Errors
    /// [`ConnectError`] if an address or the settings are invalid.
    pub fn quorum_lazy<A: AsRef<str>>(
        self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Locks, ConnectError> {
        self.check()?;
        let this = self.identified();
        let nodes = this.members(addresses)?.into_iter();
        Ok(this.build(nodes.map(Member::into_transport).collect())?)
    }

    /// Returns the names that may be held, for each of these addresses, and there for each server. A Redis server keeps to
    /// a pattern of Redis, and a store returns all.
    ///
    /// # Errors
    /// [`ConnectError`] for an address that [`LocksBuilder::quorum`] refuses.
    #[doc(hidden)]
    pub async fn scan<A: AsRef<str>>(
        &self,
        addresses: impl IntoIterator<Item = A>,
        pattern: &str,
    ) -> Result<Vec<Result<Vec<Scanned>, NodeProblem>>, ConnectError> {
        let members = self.members(addresses)?;
        Ok(join_all(members.iter().map(|member| member.scan(pattern))).await)
    }

    /// Draws the identity of the client that this builder is about to make. Builders are cloned, so it is not drawn before.
    fn identified(self) -> Self {
        let mut builder = self;
        if builder.label.is_some() {
            builder.identity = Some(draw_identity(&*builder.chosen_runtime()));
        }
        builder
    }

    /// Returns the members at these addresses. Sends nothing yet.
    fn members<A: AsRef<str>>(
        &self,
        addresses: impl IntoIterator<Item = A>,
    ) -> Result<Vec<Member>, ConnectError> {
        let addresses: Vec<A> = addresses.into_iter().collect();
        let of = addresses.len();
        let members = addresses.iter();
        members
            .map(|address| Member::open(address.as_ref(), of, self))
            .collect()
    }

    /// Makes a client of these nodes, if enough of them are usable.
    async fn join(self, mut nodes: Vec<Member>) -> Result<Locks, ConnectError> {
        nodes.sort_by(|a, b| a.address().cmp(b.address()));
        distinct(nodes.iter().map(Member::address))?;
        self.check_servers(&nodes).await?;
        #[cfg(feature = "redis")]
        {
            redis::warn_of_doubts(&nodes, &self.prefix()).await;
            self.doubt_call_timeout();
        }
        let nodes = nodes.into_iter().map(Member::into_transport);
        Ok(self.build(nodes.collect())?)
    }
}

impl LocksBuilder {
    /// Checks that enough servers are usable. Waits for those that cannot be reached, if there is patience.
    async fn check_servers(&self, nodes: &[Member]) -> Result<(), ConnectError> {
        let runtime = self.chosen_runtime();
        let until = runtime.now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.check_once(nodes).await {
                Err(error @ ConnectError::Nodes { .. }) => error,
                other => return other,
            };
            let next = runtime.now() + pause;
            if error.is_final() || until < next {
                return Err(error);
            }
            let mut timer = runtime.timer();
            poll_fn(|cx| timer.poll_until(cx, next)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn check_once(&self, nodes: &[Member]) -> Result<(), ConnectError> {
        let checks = join_all(nodes.iter().map(Member::check)).await;
        let of = nodes.len();
        different(nodes, &checks)?;
        let problems = checks.iter().filter_map(|check| check.as_ref().err());
        let problems: Vec<NodeProblem> = problems.cloned().collect();
        let (reachable, needed) = (of - problems.len(), Threshold::majority(of).needed());
        if reachable < needed || problems.iter().any(NodeProblem::is_final) {
            return Err(ConnectError::Nodes {
                reachable,
                needed,
                of,
                problems,
            });
        }
        #[cfg(feature = "redis")]
        if self.trust_in(of) != NodeTrust::Unwatched {
            redis::warn_of_backups(nodes, &checks);
        }
        Ok(())
    }
}

/// Checks that no two addresses lead to one server, to one Sentinel group or to one store. A group whose primary does not
/// answer is identified by its sentinels.
fn different(nodes: &[Member], checks: &[Result<Checked, NodeProblem>]) -> Result<(), ConfigError> {
    let checks = checks.iter().map(|check| check.as_ref().ok());
    let nodes: Vec<_> = nodes.iter().zip(checks).collect();
    for (index, (node, checked)) in nodes.iter().enumerate() {
        let mut before = nodes.iter().take(index);
        if let Some((other, _)) = before.find(|(other, its)| node.is_same_as(*checked, other, *its))
        {
            return Err(ConfigError::SameServer {
                address: other.address().to_owned(),
                other: node.address().to_owned(),
            });
        }
    }
    Ok(())
}
