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
    pub(in crate::fault) leads_to_election: bool,
    pub(in crate::fault) sets_clock: bool,
    pub(in crate::fault) forgets: Forgets,
    pub(in crate::fault) drawn: Drawn,
    /// The largest number of faults of the kind that are drawn for a plan.
    pub(in crate::fault) most: u64,
    pub(in crate::fault) allowed: Allowed,
    pub(in crate::fault) not_over_sockets: Option<&'static str>,
    pub(in crate::fault) not_on_real_servers: Option<&'static str>,
    pub(in crate::fault) not_served: Option<&'static str>,
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

/// What a node forgets by a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forgets {
    /// Nothing, or what another node still has.
    Nothing,
    /// What its persistence has not saved.
    Unsaved,
    /// Writes that were saved, too.
    Saved,
}

/// The plans for which faults of a kind are drawn, beside what the kind [needs](Needs).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Drawn {
    Always,
    /// For nodes with replicas.
    WithReplicas,
    /// For nodes without replicas. With one, the fault does nothing.
    WithoutReplicas,
    /// For several nodes.
    AmongNodes,
    /// For users who name the kind, because no checker of the simulator judges what it does. Storms on real servers do.
    ByName,
}

/// When the stated assumptions of a lock allow a kind of fault: only a minority of nodes loses data, only by restarts, and
/// these nodes are watched; no clock of a node is stepped by more than the margin; and the clock of a machine counts the
/// time of its suspension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Allowed {
    Always,
    Never,
    /// Where primaries are elected. A claim counts only when all replicas have it, so no election loses one.
    WithElections,
    /// Where no primaries are elected. A promoted replica expires a claim by its own clock, so the clocks of a group must
    /// agree.
    WithoutElections,
    /// Like [`Allowed::WithoutElections`], and with a clock margin.
    WithinMargin,
    /// At watched nodes of a majority. They may lose data if a majority of the token counters survives.
    OfMinority,
}

const fn of_length(length: Length) -> Row {
    Row {
        length,
        needs: Needs::Nothing,
        direction: None,
        strikes_replicas: false,
        looks_new: false,
        leads_to_election: false,
        sets_clock: false,
        forgets: Forgets::Nothing,
        drawn: Drawn::Always,
        most: 4,
        allowed: Allowed::Always,
        not_over_sockets: None,
        not_on_real_servers: None,
        not_served: None,
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

    /// Where nodes elect their primaries, the fault makes them elect another one.
    pub(super) const fn leads_to_election(self) -> Row {
        let leads_to_election = true;
        Row {
            leads_to_election,
            ..self
        }
    }

    /// The fault sets a clock of its client or node, or makes it run differently.
    pub(super) const fn sets_clock(self) -> Row {
        let sets_clock = true;
        Row { sets_clock, ..self }
    }

    /// The node forgets something.
    pub(super) const fn forgets(self, forgets: Forgets) -> Row {
        Row { forgets, ..self }
    }

    /// The fault is drawn only for some plans.
    pub(super) const fn drawn(self, drawn: Drawn) -> Row {
        Row { drawn, ..self }
    }

    /// The number of faults of the kind in a drawn plan is at most this.
    pub(super) const fn at_most(self, most: u64) -> Row {
        Row { most, ..self }
    }

    /// The stated assumptions of a lock do not always allow the fault.
    pub(super) const fn allowed(self, allowed: Allowed) -> Row {
        Row { allowed, ..self }
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

    /// Nodes that are served on ports do not have the fault, for this reason.
    pub(super) const fn not_served(self, why: &'static str) -> Row {
        let not_served = Some(why);
        Row { not_served, ..self }
    }
}
