//! A failover, from its election until every sentinel has learned of the promotion.

use crate::world::id::NodeId;

/// The progress of a failover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FailoverState {
    Calm,
    Electing {
        leader: NodeId,
        primary: NodeId,
        mandate: Mandate,
        ends: u64,
    },
}

/// The reason why a sentinel may lead a failover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mandate {
    /// A majority has voted for the sentinel.
    Vote,
    /// The sentinel was ordered to fail over (`SENTINEL FAILOVER`).
    Order,
}

/// A promotion that some sentinels have not learned of.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnannouncedPromotion {
    /// When the other sentinels begin to learn of it.
    pub(super) spreads: u64,
    /// The sentinel that has made the switch but not yet published it.
    pub(super) untold: Option<NodeId>,
}
