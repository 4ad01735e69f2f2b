//! What the faults of the plan have done and do now.

use crate::world::id::{FaultId, Id, NodeId, Seat};

/// Which faults of links are active, and how often each fault did something.
#[derive(Debug, Default)]
pub(crate) struct ActiveFaults {
    /// Each with the time at which it ends.
    active: Vec<(FaultId, u64)>,
    /// Fault after fault.
    effects: Vec<u32>,
    /// The nodes of the plan that clients have asked something, bit by bit.
    used: u16,
}

impl ActiveFaults {
    /// None of this many has done anything.
    pub(crate) fn new(many: usize) -> Self {
        ActiveFaults {
            active: Vec::new(),
            effects: vec![0; many],
            used: 0,
        }
    }

    pub(crate) fn begin(&mut self, fault: FaultId, until: u64) {
        self.active.push((fault, until));
    }

    pub(crate) fn end(&mut self, fault: FaultId) {
        self.active.retain(|(active, _)| *active != fault);
    }

    /// In the order in which they began, each with the time at which it ends.
    pub(crate) fn active(&self) -> impl Iterator<Item = (FaultId, u64)> {
        self.active.iter().copied()
    }

    /// A fault did something.
    pub(crate) fn blame(&mut self, fault: FaultId) {
        if let Some(count) = self.effects.get_mut(fault.index()) {
            *count += 1;
        }
    }

    /// A client asks a node of the plan, or is answered.
    #[inline]
    pub(crate) fn note_use(&mut self, seat: Seat) {
        self.used |= 1u16.checked_shl(seat.get().into()).unwrap_or(0);
    }

    /// Whether a client has asked a node of the plan something.
    pub(crate) fn is_used(&self, seat: u16) -> bool {
        self.used & 1u16.checked_shl(seat.into()).unwrap_or(0) != 0
    }

    /// How often each fault did something.
    pub(crate) fn into_effects(self) -> Vec<u32> {
        self.effects
    }
}

/// A replica has taken the place of its primary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failover {
    pub(crate) seat: Seat,
    /// The primary before.
    pub(crate) from: NodeId,
    /// The primary since.
    pub(crate) to: NodeId,
    /// What is to blame.
    pub(crate) by: Option<FaultId>,
}

/// The failovers so far, the last at the end.
#[derive(Debug, Default)]
pub(crate) struct Failovers(Vec<Failover>);

impl Failovers {
    pub(crate) fn push(&mut self, failover: Failover) {
        self.0.push(failover);
    }

    /// The node that clients are sent to for a node of the plan.
    pub(crate) fn primary(&self, seat: Seat) -> NodeId {
        let last = self.0.iter().rev().find(|failover| failover.seat == seat);
        last.map_or(seat.first_node(), |failover| failover.to)
    }

    /// Whether another server has taken the place of a node of the plan.
    pub(crate) fn has_any(&self, seat: u16) -> bool {
        self.0
            .iter()
            .any(|failover| failover.seat == Seat::new(seat))
    }

    /// What a fault has done.
    pub(crate) fn by(&self, fault: FaultId) -> Option<Failover> {
        let mut all = self.0.iter();
        all.find(|failover| failover.by == Some(fault)).copied()
    }
}
