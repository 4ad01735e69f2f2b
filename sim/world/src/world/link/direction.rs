//! One direction of a link, and what happens to its messages.

use crate::world::fault::ActiveFaults;
use crate::world::id::FaultId;
use quorlock_sim_plan::draw::{Draw, Purpose};
use quorlock_sim_plan::fault::LinkFault;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct LinkDirection {
    latency: Draw,
    dice: Draw,
    min: u64,
    max: u64,
    last_arrival: u64,
    trouble: Option<Box<Impairment>>,
}

/// The impairments of a direction, each with the fault that caused it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Impairment {
    cut: Option<FaultId>,
    loss: Option<(u32, FaultId)>,
    delay: Option<(u64, u64, FaultId)>,
    held_until: Option<(u64, FaultId)>,
    duplicate: Option<(u32, u64, FaultId)>,
    reorder: Option<(u64, FaultId)>,
    /// Set if the connection swallows every message, even when other faults begin or end.
    swallowed: Option<FaultId>,
}

impl Impairment {
    /// Adds the effect of a fault that ends at a given time.
    pub(crate) fn add(&mut self, fault: LinkFault, ends: u64, id: FaultId) {
        match fault {
            LinkFault::Cut => self.cut = Some(id),
            LinkFault::Loss { of_million } => self.loss = Some((of_million, id)),
            LinkFault::Delay { min, max } => {
                self.delay = Some((min.as_nanos(), max.as_nanos(), id));
            }
            LinkFault::HoldBack => self.held_until = Some((ends, id)),
            LinkFault::Duplicate { of_million, max } => {
                self.duplicate = Some((of_million, max.as_nanos(), id));
            }
            LinkFault::Reorder { max } => self.reorder = Some((max.as_nanos(), id)),
            LinkFault::Reset { .. } | LinkFault::Swallow => {}
        }
    }
}

/// Whether and when a message arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// It is lost.
    Never,
    /// It arrives at this time.
    Once(u64),
    /// It arrives at both times.
    Twice(u64, u64),
}

impl Passage {
    /// Returns when its first copy arrives.
    pub fn first(self) -> Option<u64> {
        match self {
            Passage::Never => None,
            Passage::Once(at) | Passage::Twice(at, _) => Some(at),
        }
    }
}

impl LinkDirection {
    pub(crate) fn new(seed: u64, index: u64, min: u64, max: u64) -> Self {
        LinkDirection {
            latency: Draw::new(seed, Purpose::Latency, index),
            dice: Draw::new(seed, Purpose::Fault, index),
            min,
            max,
            last_arrival: 0,
            trouble: None,
        }
    }

    /// Draws the passage of all later messages anew.
    pub(super) fn branch_off(&mut self, seed: u64) {
        self.latency.branch_off(seed);
        self.dice.branch_off(seed);
    }

    pub(crate) fn set_trouble(&mut self, trouble: Option<Impairment>) {
        let swallowed = self.trouble.take().and_then(|before| before.swallowed);
        self.trouble = trouble.map(Box::new);
        if let Some(by) = swallowed {
            self.swallow(by);
        }
    }

    pub(super) fn swallow(&mut self, by: FaultId) {
        self.trouble.get_or_insert_default().swallowed = Some(by);
    }

    pub(super) fn swallows(&self) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|trouble| trouble.swallowed.is_some())
    }

    pub(super) fn swallow_no_more(&mut self) -> bool {
        let trouble = self.trouble.as_mut();
        trouble.is_some_and(|trouble| trouble.swallowed.take().is_some())
    }

    /// Delays messages: they arrive no earlier than if they were sent at `until`.
    pub(super) fn say_nothing_until(&mut self, until: u64) {
        let arrival = until + self.latency.between(self.min, self.max);
        self.last_arrival = self.last_arrival.max(arrival);
    }

    /// Returns whether messages may be lost now.
    pub(crate) fn is_lossy(&self) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|t| t.cut.is_some() || t.loss.is_some() || t.swallowed.is_some())
    }

    /// Sends a message at `depart`. Messages arrive in order, unless a fault reorders them. `faults` counts the effects
    /// of each fault.
    pub(crate) fn send(&mut self, depart: u64, faults: &mut ActiveFaults) -> Passage {
        let arrival = depart + self.latency.between(self.min, self.max);
        if self.trouble.is_none() {
            self.last_arrival = self.last_arrival.max(arrival);
            return Passage::Once(self.last_arrival);
        }
        self.send_through_trouble(depart, arrival, faults)
    }

    #[cold]
    fn send_through_trouble(
        &mut self,
        depart: u64,
        arrival: u64,
        faults: &mut ActiveFaults,
    ) -> Passage {
        let Some(trouble) = &self.trouble else {
            return Passage::Once(arrival);
        };
        let dice = &mut self.dice;
        let mut blame = |id| faults.blame(id);
        if let Some(id) = trouble.swallowed.or(trouble.cut) {
            blame(id);
            return Passage::Never;
        }
        if let Some((of_million, id)) = trouble.loss
            && dice.chance(of_million)
        {
            blame(id);
            return Passage::Never;
        }
        let mut arrival = arrival;
        if let Some((min, max, id)) = trouble.delay {
            arrival += dice.between(min, max);
            blame(id);
        }
        if let Some((until, id)) = trouble.held_until
            && depart < until
        {
            arrival = arrival.max(until);
            blame(id);
        }
        if let Some((max, id)) = trouble.reorder {
            arrival += dice.between(0, max);
            if arrival < self.last_arrival {
                blame(id);
            }
            self.last_arrival = self.last_arrival.max(arrival);
        } else {
            self.last_arrival = self.last_arrival.max(arrival);
            arrival = self.last_arrival;
        }
        if let Some((of_million, max, id)) = trouble.duplicate
            && dice.chance(of_million)
        {
            blame(id);
            return Passage::Twice(arrival, arrival + dice.between(0, max));
        }
        Passage::Once(arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::id::Id;
    use quorlock_sim_plan::time::SimTime;

    fn way() -> LinkDirection {
        LinkDirection::new(1, 0, 1_000, 5_000)
    }

    /// Puts a fault on a direction until a time.
    fn set(way: &mut LinkDirection, fault: LinkFault, ends: u64, id: u16) {
        let mut trouble = Impairment::default();
        trouble.add(fault, ends, FaultId::new(id));
        way.set_trouble(Some(trouble));
    }

    #[test]
    fn messages_arrive_in_order_within_the_bounds() {
        let mut way = way();
        let mut before = 0;
        for depart in (0..100_000).step_by(100) {
            let Passage::Once(at) = way.send(depart, &mut ActiveFaults::default()) else {
                panic!()
            };
            assert!(before <= at && depart + 1_000 <= at && at <= depart + 5_000);
            before = at;
        }
    }

    #[test]
    fn a_cut_loses_and_a_hold_back_delays_and_each_is_counted() {
        let mut way = way();
        let mut faults = ActiveFaults::new(4);
        set(&mut way, LinkFault::Cut, 0, 2);
        assert_eq!(way.send(0, &mut faults), Passage::Never);
        set(&mut way, LinkFault::HoldBack, 90_000, 1);
        assert_eq!(way.send(0, &mut faults), Passage::Once(90_000));
        let twice = LinkFault::Duplicate {
            of_million: 1_000_000,
            max: SimTime::nanos(10),
        };
        set(&mut way, twice, 0, 3);
        assert!(matches!(way.send(0, &mut faults), Passage::Twice(a, b) if a <= b));
        assert_eq!(faults.into_effects(), [0, 1, 1, 1]);
    }

    #[test]
    fn reordered_messages_overtake() {
        let mut way = way();
        let mut faults = ActiveFaults::new(1);
        let reorder = LinkFault::Reorder {
            max: SimTime::nanos(50_000),
        };
        set(&mut way, reorder, 0, 0);
        for depart in 0..100 {
            way.send(depart, &mut faults);
        }
        assert!(10 < faults.into_effects()[0]);
    }
}
