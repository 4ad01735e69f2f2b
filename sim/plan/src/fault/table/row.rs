//! What holds for every fault of a kind: the part of its row in the table that is neither fields nor words.

use crate::fault::detail::Direction;

/// What holds for every fault of a kind. [`lasting`] and its neighbours begin a row, and the methods refine it.
#[derive(Clone, Copy, Debug)]
pub(in crate::fault) struct Row {
    pub(in crate::fault) length: Length,
    pub(in crate::fault) needs: Needs,
    /// The direction of the affected messages, if it is the same for all faults of the kind. Files then omit it.
    pub(in crate::fault) direction: Option<Direction>,
    pub(in crate::fault) strikes_replicas: bool,
    pub(in crate::fault) looks_new: bool,
    pub(in crate::fault) not_over_sockets: Option<&'static str>,
    pub(in crate::fault) not_on_real_servers: Option<&'static str>,
}

/// The field that holds the length of a fault in files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::fault) enum Length {
    /// No field, because the fault happens once or is permanent.
    None,
    Lasts,
    RestartAfter,
    RejoinAfter,
}

/// The deployment that a kind of fault needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Any deployment.
    Nothing,
    /// Nodes with replicas.
    Replicas,
    /// Nodes that are neither Sentinel groups nor the shards of a cluster.
    PlainServers {
        /// Why Sentinel groups do not have the fault, and which one they have instead.
        not_in_groups: &'static str,
        /// Why a cluster does not have the fault, and which one it has instead.
        not_in_clusters: &'static str,
    },
    /// Nodes that elect their primaries: Sentinel groups, or the shards of a cluster.
    Elections,
    /// Sentinel groups.
    Sentinels,
    /// A cluster.
    Cluster,
}

const fn of_length(length: Length) -> Row {
    Row {
        length,
        needs: Needs::Nothing,
        direction: None,
        strikes_replicas: false,
        looks_new: false,
        not_over_sockets: None,
        not_on_real_servers: None,
    }
}

/// A fault that happens once, or is permanent.
pub(super) const fn once() -> Row {
    of_length(Length::None)
}

/// A fault that ends by itself: `lasts`.
pub(super) const fn lasting() -> Row {
    of_length(Length::Lasts)
}

/// A fault that ends a process until it is restarted: `restart_after`.
pub(super) const fn until_restarted() -> Row {
    of_length(Length::RestartAfter)
}

/// A fault that makes a server leave until it rejoins: `rejoin_after`.
pub(super) const fn until_rejoined() -> Row {
    of_length(Length::RejoinAfter)
}

impl Row {
    /// The fault needs a deployment.
    pub(super) const fn needs(self, needs: Needs) -> Row {
        Row { needs, ..self }
    }

    /// The fault affects requests only.
    pub(super) const fn of_requests(self) -> Row {
        let direction = Some(Direction::ToNode);
        Row { direction, ..self }
    }

    /// The fault affects both directions of a link.
    pub(super) const fn both_ways(self) -> Row {
        let direction = Some(Direction::Both);
        Row { direction, ..self }
    }

    /// The fault may strike a replica instead of its primary.
    pub(super) const fn or_of_a_replica(self) -> Row {
        let strikes_replicas = true;
        Row {
            strikes_replicas,
            ..self
        }
    }

    /// After the fault, clients that watch the node may take it for another process, and quarantine it.
    pub(super) const fn looks_new(self) -> Row {
        let looks_new = true;
        Row { looks_new, ..self }
    }

    /// The lane over sockets does not have the fault, for this reason.
    pub(super) const fn not_over_sockets(self, why: &'static str) -> Row {
        let not_over_sockets = Some(why);
        Row {
            not_over_sockets,
            ..self
        }
    }

    /// Storms on real servers do not have the fault, for this reason.
    pub(super) const fn not_on_real_servers(self, why: &'static str) -> Row {
        let not_on_real_servers = Some(why);
        Row {
            not_on_real_servers,
            ..self
        }
    }
}
