//! One node of a client, at an address of any kind.

use std::sync::Arc;

use quorlock_core::name::Name;
use quorlock_core::transport::{Transport, TransportError};
#[cfg(feature = "redis")]
use quorlock_redis::RedisTransport;
#[cfg(feature = "store")]
use quorlock_store::{Key, StoreTransport};

use crate::builder::LocksBuilder;
use crate::error::{ConnectError, NodeProblem};

/// The schemes of stores, with the cargo features that they need.
const STORES: [(&str, &str, bool); 9] = [
    ("etcd", "etcd", cfg!(feature = "etcd")),
    ("mongodb", "mongodb", cfg!(feature = "mongodb")),
    ("mongodb+srv", "mongodb", cfg!(feature = "mongodb")),
    ("mysql", "mysql", cfg!(feature = "mysql")),
    ("postgres", "postgres", cfg!(feature = "postgres")),
    ("postgresql", "postgres", cfg!(feature = "postgres")),
    ("s3", "s3", cfg!(feature = "s3")),
    ("sqlite", "sqlite", cfg!(feature = "sqlite")),
    ("zk", "zookeeper", cfg!(feature = "zookeeper")),
];

/// A node at an address.
pub(super) enum Member {
    /// A Redis server, a Sentinel group, or a cluster.
    #[cfg(feature = "redis")]
    Redis(RedisTransport),
    /// A store with conditional writes.
    #[cfg(feature = "store")]
    Store(StoreTransport),
}

/// What a node has said about itself.
pub(super) enum Checked {
    #[cfg(feature = "redis")]
    Redis(quorlock_redis::Checked),
    #[cfg(feature = "store")]
    Store(quorlock_store::Process),
}

/// The names that one server may have, or the reason why they are not known.
#[derive(Clone, Debug)]
pub struct Scanned {
    /// The server's address, without credentials.
    pub address: String,
    /// The names.
    pub names: Result<Vec<Name>, TransportError>,
}

impl Member {
    /// Returns the node at an address, as one of this many. Sends nothing.
    pub(super) fn open(
        address: &str,
        of: usize,
        builder: &LocksBuilder,
    ) -> Result<Self, ConnectError> {
        let (scheme, _) = address.trim().split_once(':').unwrap_or_default();
        let scheme = scheme.to_ascii_lowercase();
        let store = STORES.iter().find(|(known, ..)| *known == scheme);
        match store {
            Some((scheme, feature, false)) => Err(ConnectError::Feature { scheme, feature }),
            #[cfg(feature = "store")]
            Some(_) => {
                let store = quorlock_store::open(address)?;
                Ok(Member::Store(StoreTransport::new(store)))
            }
            #[cfg(feature = "redis")]
            _ => builder.redis_member(address, of).map(Member::Redis),
            #[cfg(not(feature = "redis"))]
            _ => {
                let _ = (of, builder);
                Err(ConnectError::Feature {
                    scheme: "redis",
                    feature: "redis",
                })
            }
        }
    }

    pub(super) fn address(&self) -> &str {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(node) => node.address(),
            #[cfg(feature = "store")]
            Member::Store(node) => node.address(),
        }
    }

    /// Checks that the node answers and is suitable.
    pub(super) async fn check(&self) -> Result<Checked, NodeProblem> {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(node) => node
                .check()
                .await
                .map(Checked::Redis)
                .map_err(NodeProblem::Redis),
            #[cfg(feature = "store")]
            Member::Store(node) => {
                let checked = node.check().await.map(Checked::Store);
                checked.map_err(|error| self.problem(error))
            }
        }
    }

    /// Makes the table of a store, if it is not there. Returns whether this node has one.
    pub(super) async fn set_up(&self) -> Result<bool, NodeProblem> {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(_) => Ok(false),
            #[cfg(feature = "store")]
            Member::Store(node) => {
                let made = node.store().set_up().await;
                let has_table = node.store().schema().is_some();
                made.map(|()| has_table)
                    .map_err(|error| self.problem(error))
            }
        }
    }

    /// Returns the SQL that makes the table of a store.
    pub(super) fn schema(&self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(_) => None,
            #[cfg(feature = "store")]
            Member::Store(node) => node.store().schema(),
        }
    }

    #[cfg(feature = "store")]
    fn problem(&self, error: TransportError) -> NodeProblem {
        NodeProblem::Store {
            address: self.address().to_owned(),
            error,
        }
    }

    /// Whether two nodes, of which this is known, are one.
    pub(super) fn is_same_as(
        &self,
        checked: Option<&Checked>,
        other: &Member,
        others: Option<&Checked>,
    ) -> bool {
        #[cfg(feature = "redis")]
        if let (Member::Redis(node), Member::Redis(other)) = (self, other)
            && node.is_same_group_as(other)
        {
            return true;
        }
        let _ = other;
        match (checked, others) {
            #[cfg(feature = "redis")]
            (Some(Checked::Redis(one)), Some(Checked::Redis(other))) => {
                one.run_id.is_some() && one.run_id == other.run_id
            }
            #[cfg(feature = "store")]
            (Some(Checked::Store(one)), Some(Checked::Store(other))) => one == other,
            _ => false,
        }
    }

    pub(super) fn into_transport(self) -> Arc<dyn Transport> {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(node) => Arc::new(node),
            #[cfg(feature = "store")]
            Member::Store(node) => Arc::new(node),
        }
    }

    /// Returns the names that may be held, for each server of the node. A Redis server keeps to a pattern of Redis, and a
    /// store returns all.
    pub(super) async fn scan(&self, pattern: &str) -> Result<Vec<Scanned>, NodeProblem> {
        match self {
            #[cfg(feature = "redis")]
            Member::Redis(node) => {
                let servers = node.scan(pattern).await.map_err(NodeProblem::Redis)?;
                let scanned = servers.into_iter().map(|server| Scanned {
                    address: server.address,
                    names: server.names,
                });
                Ok(scanned.collect())
            }
            #[cfg(feature = "store")]
            Member::Store(node) => {
                let _ = pattern;
                let address = self.address().to_owned();
                let names = names_of(node).await;
                Ok(vec![Scanned { address, names }])
            }
        }
    }
}

/// Returns the names that the records of a store may be about.
#[cfg(feature = "store")]
async fn names_of(node: &StoreTransport) -> Result<Vec<Name>, TransportError> {
    let mut names = Vec::new();
    let mut last: Option<Key> = None;
    loop {
        let keys = node.store().keys(last.as_ref()).await?;
        for key in &keys {
            let stem = key.as_bytes();
            let twin = [b"{", stem, b"}"].concat();
            let both = [stem, &twin].into_iter().map(Name::new);
            let both = both.filter_map(Result::ok);
            // Of a record of another program, the key may be none of a name.
            names.extend(both.filter(|name| name.stem() == stem && stem != Key::MARKER));
        }
        last = match keys.into_iter().last() {
            Some(key) => Some(key),
            None => return Ok(names),
        };
    }
}
