//! The servers of a plan, and how messages travel to them.

use serde::{Deserialize, Serialize};

use crate::plan::time::Span;

/// The servers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nodes {
    /// How many.
    pub count: u16,
    /// What one still has after a restart.
    pub persistence: Persistence,
    /// How many replicas each has. A replica answers only once it was promoted.
    pub replicas: u16,
    /// How long a write is on its way to a replica, at least.
    pub replication_lag: Span,
    /// How many replicas must have a claim before a grant or a renewal counts (`WAIT`); without, none.
    pub wait: Option<Wait>,
    /// Without how many replicas it takes no writes (`min-replicas-to-write`); without, it always does.
    pub min_replicas: Option<MinReplicas>,
}

/// How many replicas must have a claim before a grant or a renewal counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// So many.
    pub replicas: u16,
    /// The answer is an error if they have not confirmed by then.
    pub within: Span,
}

/// A server that takes no writes when too few replicas follow it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MinReplicas {
    /// So many must follow (`min-replicas-to-write`).
    pub count: u16,
    /// It notices this much later that one does not any more (`min-replicas-max-lag`).
    pub max_lag: Span,
}

impl Default for Nodes {
    fn default() -> Self {
        Nodes {
            count: 5,
            persistence: Persistence::EveryWrite,
            replicas: 0,
            replication_lag: Span::millis(1),
            wait: None,
            min_replicas: None,
        }
    }
}

/// What a server still has after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// Nothing.
    Memory,
    /// What it had at the last full second (`appendfsync everysec`).
    EverySecond,
    /// Everything (`appendfsync always`).
    #[default]
    EveryWrite,
}

/// How messages travel while nothing is wrong: in order, each for a time drawn between two bounds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// The shortest time, one way.
    pub least: Span,
    /// The longest time.
    pub most: Span,
    /// A call ends after this, on the clock of the client.
    pub call_timeout: Span,
    /// A connection attempt ends after this.
    pub connect_timeout: Span,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            least: Span::millis(1),
            most: Span::millis(5),
            call_timeout: Span::secs(2),
            connect_timeout: Span::secs(1),
        }
    }
}
