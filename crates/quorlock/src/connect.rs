//! Clients of real servers and stores: the constructors of [`Locks`] that take addresses.

mod member;
#[cfg(feature = "redis")]
mod redis;
mod store;

use futures_util::future::join_all;
use quorlock_core::quorum::Threshold;

use self::member::{Checked, Member, Scanned};
use crate::builder::{LocksBuilder, distinct};
use crate::error::{ConfigError, ConnectError, NodeProblem};
use crate::locks::Locks;
#[cfg(feature = "redis")]
use crate::shared::trust::NodeTrust;

impl Locks {
    /// Connects to one Redis server: `redis://[user[:password]@]host[:port][/db]` or `unix:///path`; or to a store:
    /// `postgres://user:password@host[:port]/database`, the same with `mysql://`, `sqlite:/path/of/the/file`, or
    /// `etcd://[user:password@]host[:port][,host[:port]..][/prefix]`, with the cargo features `postgres`, `mysql`, `sqlite` and
    /// `etcd`. A database needs a table ([`Locks::init`]).
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
        let nodes = self.members(addresses)?;
        self.join(nodes).await
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
        let checks = join_all(nodes.iter().map(Member::check)).await;
        let needed = Threshold::majority(nodes.len()).needed();
        let of = nodes.len();
        different(&nodes, &checks)?;
        #[cfg(feature = "redis")]
        if self.trust_in(of) != NodeTrust::Unwatched {
            redis::warn_of_backups(&nodes, &checks);
        }
        let problems: Vec<NodeProblem> = checks.into_iter().filter_map(Result::err).collect();
        let reachable = of - problems.len();
        if problems.iter().any(NodeProblem::is_final) || reachable < needed {
            return Err(ConnectError::Nodes {
                reachable,
                needed,
                of,
                problems,
            });
        }
        #[cfg(feature = "redis")]
        {
            redis::warn_of_doubts(&nodes, self.prefix()).await;
            self.doubt_call_timeout();
        }
        let nodes = nodes.into_iter().map(Member::into_transport);
        Ok(self.build(nodes.collect())?)
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
