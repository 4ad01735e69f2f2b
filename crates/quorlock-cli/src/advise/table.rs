//! The deployments, and what happens to a lock on each. It agrees with the page `deployments.md`, and a test compares each
//! scenario that it names with the catalog.

mod evidence;

use std::time::Duration;

use clap::ValueEnum;

use self::evidence::{
    CLOCK_OF_DATABASE, CLOCK_OF_MAJORITY, CLOCK_OF_SERVER, CLUSTER, COPIES, ETCD,
    FAILOVER_OF_DATABASE, FAILOVER_OF_GROUP, FAILOVER_OF_SERVER, FAILOVER_OF_STORES,
    FAILOVERS_OF_MAJORITY, MINORITY, PAUSE, PAUSE_ON_MAJORITY, RESTART, RESTART_OF_MAJORITY,
    RESTART_OF_STORES, SHARDS,
};
pub(super) use self::evidence::{Evidence, Expected};

/// The deployments, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Server,
    Replicated,
    Group,
    Cluster,
    Servers,
    Groups,
    Shards,
    Table,
    File,
    Etcd,
    Stores,
}

/// What takes the place of a server that fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Failover {
    None,
    Sentinel,
    Cluster,
    Managed,
}

/// What a Redis server keeps when it loses power.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Persistence {
    None,
    Everysec,
    Always,
}

/// What happens to the clocks of servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Clocks {
    /// They may be set to another time.
    Stepped,
    /// A time service changes their rate alone.
    Slewed,
}

/// Whether the resource compares fencing tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Resource {
    Compares,
    Cannot,
}

/// What is asked: a deployment, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) kind: Kind,
    pub(super) servers: u32,
    pub(super) failover: Option<Failover>,
    pub(super) persistence: Option<Persistence>,
    pub(super) clocks: Option<Clocks>,
    pub(super) survive: Option<Duration>,
    pub(super) resource: Option<Resource>,
}

/// A deployment.
#[derive(Debug)]
pub(super) struct Deployment {
    pub(super) kind: Kind,
    pub(super) title: &'static str,
    pub(super) address: &'static str,
    pub(super) promise: &'static str,
    /// What happens when it is down.
    pub(super) down: &'static str,
    pub(super) evidence: &'static [&'static [Evidence]],
    /// Pages to read, below `docs/src`.
    pub(super) pages: &'static [&'static str],
}

impl Kind {
    pub(super) fn is_majority(self) -> bool {
        matches!(
            self,
            Kind::Servers | Kind::Groups | Kind::Shards | Kind::Stores
        )
    }

    pub(super) fn deployment(self) -> &'static Deployment {
        let found = DEPLOYMENTS
            .iter()
            .find(|deployment| deployment.kind == self);
        found.expect("BUG: each kind is in the table")
    }
}

/// All deployments.
pub(super) static DEPLOYMENTS: [Deployment; 11] = [
    Deployment {
        kind: Kind::Server,
        title: "one Redis server",
        address: "redis://h",
        promise: "one holder while the server keeps its data and its clock is right",
        down: "no locks until it is up again",
        evidence: &[RESTART, CLOCK_OF_SERVER, PAUSE],
        pages: &["deployments.md", "how-to/restarts.md#restart-a-single-node"],
    },
    Deployment {
        kind: Kind::Replicated,
        title: "one server with replicas behind one address",
        address: "redis://h",
        promise: "one holder while no failover happens, the server keeps its data and its clock is right",
        down: "no locks until a replica is promoted",
        evidence: &[FAILOVER_OF_SERVER, RESTART, CLOCK_OF_SERVER, PAUSE],
        pages: &["deployments.md", "reference/servers.md"],
    },
    Deployment {
        kind: Kind::Group,
        title: "one Sentinel group",
        address: "redis+sentinel://h1,h2,h3/name",
        promise: "one holder while no failover loses its claim and the clock of the primary is right",
        down: "no locks until a replica is promoted; holds whose claims had reached it survive",
        evidence: &[FAILOVER_OF_GROUP, CLOCK_OF_SERVER, PAUSE],
        pages: &["deployments.md#a-sentinel-group", "how-to/sentinel.md"],
    },
    Deployment {
        kind: Kind::Cluster,
        title: "one Redis Cluster",
        address: "redis+cluster://h1,h2,h3",
        promise: "for each name what one server with replicas promises",
        down: "no locks on the names of its slots until its replica is promoted",
        evidence: &[CLUSTER, CLOCK_OF_SERVER, PAUSE],
        pages: &["deployments.md#a-cluster", "how-to/cluster.md"],
    },
    Deployment {
        kind: Kind::Servers,
        title: "a majority of servers",
        address: "three or five redis://..",
        promise: "one holder, whatever happens to a minority",
        down: "nothing, up to a minority",
        evidence: &[
            RESTART_OF_MAJORITY,
            CLOCK_OF_MAJORITY,
            MINORITY,
            PAUSE_ON_MAJORITY,
        ],
        pages: &[
            "tutorial/majority.md",
            "explanation/trust.md",
            "how-to/restarts.md",
        ],
    },
    Deployment {
        kind: Kind::Groups,
        title: "a majority of servers and Sentinel groups",
        address: "redis+sentinel://.. and redis://..",
        promise: "one holder, whatever happens to a minority, also if it fails over",
        down: "nothing, up to a minority; a group is back after its failover",
        evidence: &[
            FAILOVERS_OF_MAJORITY,
            RESTART_OF_MAJORITY,
            CLOCK_OF_MAJORITY,
            MINORITY,
            PAUSE_ON_MAJORITY,
        ],
        pages: &[
            "deployments.md#a-majority-of-groups",
            "how-to/sentinel.md#lock-on-several-groups",
        ],
    },
    Deployment {
        kind: Kind::Shards,
        title: "a majority of shards of one cluster",
        address: "redis+cluster://.. and their number",
        promise: "one holder, whatever happens to a minority of those shards",
        down: "nothing, up to a minority of those shards, with cluster-require-full-coverage no",
        evidence: &[
            SHARDS,
            RESTART_OF_MAJORITY,
            CLOCK_OF_MAJORITY,
            PAUSE_ON_MAJORITY,
        ],
        pages: &[
            "deployments.md#a-majority-of-shards",
            "how-to/cluster.md#lock-on-a-majority-of-its-shards",
        ],
    },
    Deployment {
        kind: Kind::Table,
        title: "a row of PostgreSQL or MySQL",
        address: "postgres://.., mysql://..",
        promise: "one holder while no commit is lost and its clock is right; with check_in, no stale commit at all",
        down: "no locks, and no data either",
        evidence: &[FAILOVER_OF_DATABASE, COPIES, CLOCK_OF_DATABASE, PAUSE],
        pages: &["stores.md#when-one-needs-no-redlock", "stores.md"],
    },
    Deployment {
        kind: Kind::File,
        title: "a row of SQLite",
        address: "sqlite:PATH",
        promise: "the same as a row of PostgreSQL, for the programs of one machine",
        down: "no locks",
        evidence: &[COPIES, CLOCK_OF_DATABASE, PAUSE],
        pages: &["stores.md"],
    },
    Deployment {
        kind: Kind::Etcd,
        title: "a key of etcd",
        address: "etcd://h1,h2,h3",
        promise: "one holder while a majority of its members keeps its data; no step of a clock can break it",
        down: "nothing, up to a minority of its members",
        evidence: &[ETCD, PAUSE],
        pages: &["stores.md"],
    },
    Deployment {
        kind: Kind::Stores,
        title: "a majority of unlike stores",
        address: "addresses of all kinds",
        promise: "one holder, whatever happens to a minority; no common cause takes two",
        down: "nothing, up to a minority",
        evidence: &[
            RESTART_OF_STORES,
            FAILOVER_OF_STORES,
            CLOCK_OF_MAJORITY,
            MINORITY,
            PAUSE_ON_MAJORITY,
        ],
        pages: &["deployments.md#a-server-a-majority-or-a-row", "stores.md"],
    },
];
