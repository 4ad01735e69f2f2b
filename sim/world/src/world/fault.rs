//! The effects and the activity of the plan's faults.

use crate::world::id::{FaultId, Id, NodeId, Seat};

/// The link faults that are active, and how often each fault had an effect.
#[derive(Debug, Default)]
pub struct ActiveFaults {
    /// Active faults, each with the time at which it ends.
    active: Vec<(FaultId, u64)>,
    /// The number of effects of each fault, in the plan's order.
    effects: Vec<u32>,
    /// The nodes of the plan that clients have used, one bit for each.
    used: u16,
}

impl ActiveFaults {
    /// Creates the state for this many faults, before any of them has had an effect.
    pub fn new(many: usize) -> Self {
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

    /// Returns the active faults in the order in which they began, each with the time at which it ends.
    pub(crate) fn active(&self) -> impl Iterator<Item = (FaultId, u64)> {
        self.active.iter().copied()
    }

    /// Counts an effect of a fault.
    pub fn blame(&mut self, fault: FaultId) {
        if let Some(count) = self.effects.get_mut(fault.index()) {
            *count += 1;
        }
    }

    /// Records that a client exchanges messages with a node of the plan.
    #[inline]
    pub(crate) fn note_use(&mut self, seat: Seat) {
        self.used |= 1u16.checked_shl(seat.get().into()).unwrap_or(0);
    }

    /// Returns whether a client has used a node of the plan.
    pub(crate) fn is_used(&self, seat: u16) -> bool {
        self.used & 1u16.checked_shl(seat.into()).unwrap_or(0) != 0
    }

    /// Returns how often each fault had an effect.
    pub(crate) fn into_effects(self) -> Vec<u32> {
        self.effects
    }
}

/// A failover, in which a replica has replaced its primary.
#[derive(Clone, Copy, Debug)]
pub struct Failover {
    pub(crate) seat: Seat,
    /// The previous primary.
    pub from: NodeId,
    /// The new primary.
    pub to: NodeId,
    /// The fault that caused the failover, if there is one.
    pub by: Option<FaultId>,
}

/// The failovers so far, in order of time.
#[derive(Debug, Default)]
pub struct Failovers(Vec<Failover>);

impl Failovers {
    pub(crate) fn push(&mut self, failover: Failover) {
        self.0.push(failover);
    }

    /// Returns the current primary of a node of the plan.
    pub fn primary(&self, seat: Seat) -> NodeId {
        let last = self.0.iter().rev().find(|failover| failover.seat == seat);
        last.map_or(seat.first_node(), |failover| failover.to)
    }

    /// Returns whether a failover has happened at a node of the plan.
    pub(crate) fn has_any(&self, seat: u16) -> bool {
        self.0
            .iter()
            .any(|failover| failover.seat == Seat::new(seat))
    }

    /// Returns the failover that a fault has caused.
    pub fn by(&self, fault: FaultId) -> Option<Failover> {
        let mut all = self.0.iter();
        all.find(|failover| failover.by == Some(fault)).copied()
    }
}
