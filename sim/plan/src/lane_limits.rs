//! The limits of each lane.

use crate::fault::{Fault, Kind, Towards, Trigger};
use crate::variant::Variant;
use crate::{Lane, Plan};

/// A part of a plan that the lane of the plan does not support.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lacks {
    /// A kind of fault.
    #[error("the lane turmoil has no faults of kind {}: {}; use the lane fast", .0.name(), .0.lacks_sockets().unwrap_or_default())]
    Kind(Kind),
    /// A fault of an unsupported kind in a plan.
    #[error("faults[{index}]: {}", Lacks::Kind(*kind))]
    Fault {
        /// The index of the fault in the plan, from 0.
        index: usize,
        /// The kind of the fault.
        kind: Kind,
    },
    /// A fault after the answer of a node: the lane does not decode answers in transit.
    #[error(
        "faults[{0}]: the lane turmoil does not read what nodes answer; set from = \"client\" in after, or use the lane fast"
    )]
    Answer(usize),
    /// A deployment with sentinels.
    #[error(
        "nodes.sentinels: the lane fast has no sentinels, which the product's adapter needs; use the lane turmoil"
    )]
    Sentinels,
    /// A deployment as a cluster.
    #[error(
        "nodes.cluster: the lane fast has no slots, which the product's adapter needs; use the lane turmoil"
    )]
    Cluster,
    /// Nodes that are stores.
    #[error(
        "nodes.kinds: the lane turmoil has only Redis servers; use the lane fast, where the product's transport of stores runs"
    )]
    Stores,
    /// A lock on several names in a cluster.
    #[error(
        "lock: a cluster is one node or a majority of its shards; use the lock single or redlock"
    )]
    SeveralOfCluster,
    /// A variant whose flaw is in the nodes.
    #[error(
        "variant: the lane turmoil has no nodes for {0}: its servers run the product's own scripts; use the lane fast"
    )]
    Variant(Variant),
}

impl Lane {
    /// Returns whether the lane supports a kind of fault.
    #[must_use]
    pub const fn has(self, kind: Kind) -> bool {
        matches!(self, Lane::Fast) || kind.lacks_sockets().is_none()
    }
}

impl Lacks {
    /// Returns the field of the plan that the lane does not support.
    pub fn field(&self) -> Option<String> {
        match self {
            Lacks::Kind(_) => None,
            Lacks::Fault { index, .. } | Lacks::Answer(index) => Some(format!("faults[{index}]")),
            Lacks::Sentinels => Some("nodes.sentinels".to_owned()),
            Lacks::Cluster => Some("nodes.cluster".to_owned()),
            Lacks::Stores => Some("nodes.kinds".to_owned()),
            Lacks::SeveralOfCluster => Some("lock".to_owned()),
            Lacks::Variant(_) => Some("variant".to_owned()),
        }
    }

    /// Checks that the lane of a plan supports the whole plan.
    ///
    /// # Errors
    /// Returns [`Lacks`] with the part that the lane does not support.
    pub fn check(plan: &Plan) -> Result<(), Lacks> {
        if plan.lane == Lane::Fast {
            return match (&plan.nodes.sentinels, &plan.nodes.cluster) {
                (Some(_), _) => Err(Lacks::Sentinels),
                (None, Some(_)) => Err(Lacks::Cluster),
                (None, None) => Ok(()),
            };
        }
        if !plan.nodes.kinds.is_empty() {
            return Err(Lacks::Stores);
        }
        if plan.variant.flaws().iter().any(|flaw| flaw.is_of_nodes()) {
            return Err(Lacks::Variant(plan.variant));
        }
        let is_after_answer = |fault: &Fault| {
            let towards = match fault.when {
                Trigger::After(after) => Some(after.towards),
                _ => None,
            };
            towards == Some(Towards::Client)
        };
        if let Some(index) = plan.faults.iter().position(is_after_answer) {
            return Err(Lacks::Answer(index));
        }
        let mut faults = plan.faults.iter().map(|fault| fault.kind()).enumerate();
        match faults.find(|(_, kind)| !plan.lane.has(*kind)) {
            Some((index, kind)) => Err(Lacks::Fault { index, kind }),
            None => Ok(()),
        }
    }
}
