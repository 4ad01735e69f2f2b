//! What goes wrong in a run: an explicit list, never dice.

mod kind;
mod words;

use serde::{Deserialize, Serialize};

pub use kind::Kind;

use crate::plan::time::{Span, Step};

/// At which rates clocks may run: one that stands still or runs back is no clock.
pub(crate) const RATES_PPM: std::ops::RangeInclusive<i32> = -999_999..=10_000_000;

/// One thing that goes wrong, at a true time since the beginning of the run.
///
/// `clients` and `nodes` are indices from 0. A fault of links is one of every pair of its `clients` and `nodes`.
/// A fault with `lasts` ends after that; a fault without happens once, or stays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// Messages sent meanwhile are lost. One direction makes a one-way cut, some pairs a partition that is not
    /// transitive.
    Cut {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// Which messages.
        #[serde(default)]
        direction: Direction,
    },
    /// So many of a million messages are lost.
    Loss {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// Which messages.
        #[serde(default)]
        direction: Direction,
        /// How many of a million.
        of_million: u32,
    },
    /// Messages take longer, by a time drawn between two bounds.
    Delay {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// Which messages.
        #[serde(default)]
        direction: Direction,
        /// At least by this.
        least: Span,
        /// At most by this.
        most: Span,
    },
    /// Messages sent meanwhile arrive when it is over.
    HoldBack {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// Which messages.
        #[serde(default)]
        direction: Direction,
    },
    /// So many of a million requests arrive a second time, somewhat later. (A reply that arrives twice is none.)
    Duplicate {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// How many of a million.
        of_million: u32,
        /// The second copy comes at most this much later.
        most: Span,
    },
    /// Messages may overtake each other, by at most this.
    Reorder {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// Which messages.
        #[serde(default)]
        direction: Direction,
        /// At most by this.
        most: Span,
    },
    /// Connections end. What is under way to the node is executed or not; replies are lost.
    Reset {
        /// When.
        at: Span,
        /// Between these clients
        clients: Vec<u16>,
        /// and these nodes.
        nodes: Vec<u16>,
        /// What becomes of the requests under way.
        #[serde(default)]
        in_flight: InFlight,
    },
    /// The process stands still; its clocks run on.
    PauseClient {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        client: u16,
    },
    /// The same in the middle of what it does: at the n-th use of its clocks, timers, randomness or network after
    /// the time. What it sends after that leaves when the pause ends.
    PauseInside {
        /// From when on uses are counted.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        client: u16,
        /// At which use, from 1.
        nth: u32,
    },
    /// The process ends and is started again later, as a new client.
    CrashClient {
        /// When.
        at: Span,
        /// Which.
        client: u16,
        /// After how long it is started again.
        restart_after: Span,
    },
    /// The machine of the process is suspended: the process stands still, and so do its timers.
    SuspendClient {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        client: u16,
        /// Whether its monotonic clock counts the time.
        clock: Suspended,
    },
    /// What the client waits for is dropped, at the n-th poll after the time.
    Cancel {
        /// From when on polls are counted.
        at: Span,
        /// Which.
        client: u16,
        /// At which poll, from 1.
        nth: u32,
    },
    /// Both clocks of a client run at another rate from now on.
    ClientRate {
        /// When.
        at: Span,
        /// Which.
        client: u16,
        /// How much faster than true time.
        rate_ppm: i32,
    },
    /// The wall clock of a client is set.
    ClientStep {
        /// When.
        at: Span,
        /// Which.
        client: u16,
        /// By how much.
        by: Step,
    },
    /// The node stands still. Requests queue up, and are executed when it goes on; its clock runs on.
    PauseNode {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        node: u16,
    },
    /// The node ends, and comes back with what its persistence kept.
    CrashNode {
        /// When.
        at: Span,
        /// Which.
        node: u16,
        /// After how long it is started again.
        restart_after: Span,
    },
    /// `FLUSHALL`.
    Flush {
        /// When.
        at: Span,
        /// Which.
        node: u16,
    },
    /// The node evicts what it has under one name.
    Evict {
        /// When.
        at: Span,
        /// Which.
        node: u16,
        /// Which name, from 0.
        name: u16,
    },
    /// The node answers every request with an error, without executing it.
    ServerError {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        node: u16,
        /// With which.
        error: ServerError,
    },
    /// The node forgets its scripts (`SCRIPT FLUSH`): the next call of each client takes one more round trip.
    ForgetScripts {
        /// When.
        at: Span,
        /// Which.
        node: u16,
    },
    /// The wall clock of a node runs at another rate from now on.
    NodeRate {
        /// When.
        at: Span,
        /// Which.
        node: u16,
        /// How much faster than true time.
        rate_ppm: i32,
    },
    /// The wall clock of a node is set.
    NodeStep {
        /// When.
        at: Span,
        /// Which.
        node: u16,
        /// By how much.
        by: Step,
    },
    /// What the node sends to its replicas takes longer.
    SlowReplication {
        /// When.
        at: Span,
        /// How long.
        lasts: Span,
        /// Which.
        node: u16,
        /// By how much.
        by: Span,
        /// To which of its replicas, from 0; without, to all.
        #[serde(default)]
        replica: Option<u16>,
    },
    /// A replica takes the node's place. Clients that are left behind go on with the old primary, which rejoins later
    /// and loses its writes.
    Failover {
        /// When.
        at: Span,
        /// Of which node.
        node: u16,
        /// Which of its replicas is promoted, from 0.
        replica: u16,
        /// Who does not notice.
        #[serde(default)]
        left_behind: Vec<u16>,
        /// How long the old primary goes on.
        rejoin_after: Span,
    },
    /// Nodes are backed up by replication (`redis-cli --rdb`): each is followed by a replica that leaves when it has
    /// everything. A node that has no other replica draws its `master_replid` anew, as if it had been restarted, and
    /// loses nothing. A node with replicas has a backlog, and keeps it.
    Backup {
        /// When.
        at: Span,
        /// Nodes that are backed up.
        nodes: Vec<u16>,
    },
}

/// Which messages of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// All.
    #[default]
    Both,
    /// From the client to the node.
    ToNode,
    /// From the node to the client.
    ToClient,
}

/// What becomes of requests that are under way when their connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InFlight {
    /// They are lost.
    #[default]
    Lost,
    /// They arrive and are executed all the same.
    Executed,
}

/// What a monotonic clock does while its machine is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspended {
    /// It counts the time, as `CLOCK_BOOTTIME` does.
    Counts,
    /// It stands still, as `CLOCK_MONOTONIC` does.
    Stops,
}

/// An error that a server gives without executing what was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerError {
    /// `READONLY`: it is a replica.
    ReadOnly,
    /// `LOADING`: it reads its data from disk.
    Loading,
    /// `OOM`: its memory is used up.
    OutOfMemory,
    /// `BUSY`: a script does not end.
    Busy,
}

impl From<ServerError> for redis_sim::Condition {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::ReadOnly => redis_sim::Condition::ReadOnly,
            ServerError::Loading => redis_sim::Condition::Loading,
            ServerError::OutOfMemory => redis_sim::Condition::OutOfMemory,
            ServerError::Busy => redis_sim::Condition::Busy,
        }
    }
}

impl Fault {
    /// When it begins.
    #[must_use]
    pub fn at(&self) -> Span {
        match self {
            Fault::Cut { at, .. }
            | Fault::Loss { at, .. }
            | Fault::Delay { at, .. }
            | Fault::HoldBack { at, .. }
            | Fault::Duplicate { at, .. }
            | Fault::Reorder { at, .. }
            | Fault::Reset { at, .. }
            | Fault::PauseClient { at, .. }
            | Fault::PauseInside { at, .. }
            | Fault::CrashClient { at, .. }
            | Fault::SuspendClient { at, .. }
            | Fault::Cancel { at, .. }
            | Fault::ClientRate { at, .. }
            | Fault::ClientStep { at, .. }
            | Fault::PauseNode { at, .. }
            | Fault::CrashNode { at, .. }
            | Fault::Flush { at, .. }
            | Fault::Evict { at, .. }
            | Fault::ServerError { at, .. }
            | Fault::ForgetScripts { at, .. }
            | Fault::NodeRate { at, .. }
            | Fault::NodeStep { at, .. }
            | Fault::SlowReplication { at, .. }
            | Fault::Failover { at, .. }
            | Fault::Backup { at, .. } => *at,
        }
    }

    /// How long it lasts; nothing for what happens once.
    #[must_use]
    pub fn lasts(&self) -> Span {
        match self {
            Fault::Cut { lasts, .. }
            | Fault::Loss { lasts, .. }
            | Fault::Delay { lasts, .. }
            | Fault::HoldBack { lasts, .. }
            | Fault::Duplicate { lasts, .. }
            | Fault::Reorder { lasts, .. }
            | Fault::PauseClient { lasts, .. }
            | Fault::PauseInside { lasts, .. }
            | Fault::SuspendClient { lasts, .. }
            | Fault::PauseNode { lasts, .. }
            | Fault::ServerError { lasts, .. }
            | Fault::SlowReplication { lasts, .. } => *lasts,
            Fault::CrashClient { restart_after, .. } | Fault::CrashNode { restart_after, .. } => {
                *restart_after
            }
            Fault::Failover { rejoin_after, .. } => *rejoin_after,
            _ => Span::ZERO,
        }
    }

    /// Its clients, its nodes and its direction, if it is one of links.
    pub(crate) fn links(&self) -> Option<(&[u16], &[u16], Direction)> {
        match self {
            Fault::Cut {
                clients,
                nodes,
                direction,
                ..
            }
            | Fault::Loss {
                clients,
                nodes,
                direction,
                ..
            }
            | Fault::Delay {
                clients,
                nodes,
                direction,
                ..
            }
            | Fault::HoldBack {
                clients,
                nodes,
                direction,
                ..
            }
            | Fault::Reorder {
                clients,
                nodes,
                direction,
                ..
            } => Some((clients, nodes, *direction)),
            Fault::Duplicate { clients, nodes, .. } => Some((clients, nodes, Direction::ToNode)),
            Fault::Reset { clients, nodes, .. } => Some((clients, nodes, Direction::Both)),
            _ => None,
        }
    }

    /// The one client it is a fault of.
    pub(crate) fn client(&self) -> Option<u16> {
        match self {
            Fault::PauseClient { client, .. }
            | Fault::PauseInside { client, .. }
            | Fault::CrashClient { client, .. }
            | Fault::SuspendClient { client, .. }
            | Fault::Cancel { client, .. }
            | Fault::ClientRate { client, .. }
            | Fault::ClientStep { client, .. } => Some(*client),
            _ => None,
        }
    }

    /// Nodes that it is a fault of, by themselves or by their links.
    pub(crate) fn nodes(&self) -> &[u16] {
        match self {
            Fault::Backup { nodes, .. } => nodes,
            _ => match (self.links(), self.node()) {
                (Some((_, nodes, _)), _) => nodes,
                (None, Some(node)) => std::slice::from_ref(node),
                (None, None) => &[],
            },
        }
    }

    /// The one node it is a fault of.
    pub(crate) fn node(&self) -> Option<&u16> {
        match self {
            Fault::PauseNode { node, .. }
            | Fault::CrashNode { node, .. }
            | Fault::Flush { node, .. }
            | Fault::Evict { node, .. }
            | Fault::ServerError { node, .. }
            | Fault::ForgetScripts { node, .. }
            | Fault::NodeRate { node, .. }
            | Fault::NodeStep { node, .. }
            | Fault::SlowReplication { node, .. }
            | Fault::Failover { node, .. } => Some(node),
            _ => None,
        }
    }
}
