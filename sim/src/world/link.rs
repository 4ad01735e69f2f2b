//! One way between two processes, and what may happen to messages on it.

use crate::plan::draw::{Draw, Purpose};
use crate::world::call::Call;
use crate::world::slab::Key;

/// A fault of the plan, by its place in the list.
pub(crate) type FaultId = usize;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Lane {
    latency: Draw,
    dice: Draw,
    least: u64,
    most: u64,
    last_arrival: u64,
    trouble: Option<Box<Trouble>>,
}

/// What is wrong with a lane now, each with the fault that is to blame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) cut: Option<FaultId>,
    pub(crate) loss: Option<(u32, FaultId)>,
    pub(crate) delay: Option<(u64, u64, FaultId)>,
    pub(crate) held_until: Option<(u64, FaultId)>,
    pub(crate) duplicate: Option<(u32, u64, FaultId)>,
    pub(crate) reorder: Option<(u64, FaultId)>,
}

/// When a message arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passage {
    Never,
    Once(u64),
    Twice(u64, u64),
}

impl Lane {
    pub(crate) fn new(seed: u64, index: u64, least: u64, most: u64) -> Self {
        Lane {
            latency: Draw::new(seed, Purpose::Latency, index),
            dice: Draw::new(seed, Purpose::Fault, index),
            least,
            most,
            last_arrival: 0,
            trouble: None,
        }
    }

    pub(crate) fn set_trouble(&mut self, trouble: Option<Trouble>) {
        self.trouble = trouble.map(Box::new);
    }

    /// Whether messages may get lost now.
    pub(crate) fn is_lossy(&self) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|t| t.cut.is_some() || t.loss.is_some())
    }

    /// Sends a message at `depart`. In order, unless a fault says otherwise. `effects` counts what each fault did.
    pub(crate) fn send(&mut self, depart: u64, effects: &mut [u32]) -> Passage {
        let arrival = depart + self.latency.between(self.least, self.most);
        if self.trouble.is_none() {
            self.last_arrival = self.last_arrival.max(arrival);
            return Passage::Once(self.last_arrival);
        }
        self.send_through_trouble(depart, arrival, effects)
    }

    #[cold]
    fn send_through_trouble(&mut self, depart: u64, arrival: u64, effects: &mut [u32]) -> Passage {
        let Some(trouble) = &self.trouble else {
            return Passage::Once(arrival);
        };
        let dice = &mut self.dice;
        let mut blame = |id: FaultId| {
            if let Some(count) = effects.get_mut(id) {
                *count += 1;
            }
        };
        if let Some(id) = trouble.cut {
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
        if let Some((least, most, id)) = trouble.delay {
            arrival += dice.between(least, most);
            blame(id);
        }
        if let Some((until, id)) = trouble.held_until
            && depart < until
        {
            arrival = arrival.max(until);
            blame(id);
        }
        if let Some((most, id)) = trouble.reorder {
            arrival += dice.between(0, most);
            if arrival < self.last_arrival {
                blame(id);
            }
            self.last_arrival = self.last_arrival.max(arrival);
        } else {
            self.last_arrival = self.last_arrival.max(arrival);
            arrival = self.last_arrival;
        }
        if let Some((of_million, most, id)) = trouble.duplicate
            && dice.chance(of_million)
        {
            blame(id);
            return Passage::Twice(arrival, arrival + dice.between(0, most));
        }
        Passage::Once(arrival)
    }
}

/// What a client knows of its connection to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Up,
    Down,
    Connecting,
}

/// The link of a client and a node.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) to_node: Lane,
    pub(crate) to_client: Lane,
    pub(crate) line: Line,
    /// Calls that wait for the connection.
    pub(crate) waiting: Vec<Key<Call>>,
    /// Which connection the client uses.
    pub(crate) client_epoch: u32,
    /// Which connection the node serves; requests on an older one are refused.
    pub(crate) node_epoch: u32,
    /// The next call takes one more round trip: the node does not know the scripts.
    pub(crate) lacks_scripts: Option<FaultId>,
}

impl Link {
    pub(crate) fn new(seed: u64, index: u64, least: u64, most: u64) -> Self {
        Link {
            to_node: Lane::new(seed, 2 * index, least, most),
            to_client: Lane::new(seed, 2 * index + 1, least, most),
            line: Line::Up,
            waiting: Vec::new(),
            client_epoch: 0,
            node_epoch: 0,
            lacks_scripts: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> Lane {
        Lane::new(1, 0, 1_000, 5_000)
    }

    #[test]
    fn messages_arrive_in_order_within_the_bounds() {
        let mut lane = lane();
        let mut before = 0;
        for depart in (0..100_000).step_by(100) {
            let Passage::Once(at) = lane.send(depart, &mut []) else {
                panic!()
            };
            assert!(before <= at && depart + 1_000 <= at && at <= depart + 5_000);
            before = at;
        }
    }

    #[test]
    fn a_cut_loses_and_a_hold_back_delays_and_each_is_counted() {
        let mut lane = lane();
        let mut effects = [0; 4];
        lane.set_trouble(Some(Trouble {
            cut: Some(2),
            ..Trouble::default()
        }));
        assert_eq!(lane.send(0, &mut effects), Passage::Never);
        lane.set_trouble(Some(Trouble {
            held_until: Some((90_000, 1)),
            ..Trouble::default()
        }));
        assert_eq!(lane.send(0, &mut effects), Passage::Once(90_000));
        lane.set_trouble(Some(Trouble {
            duplicate: Some((1_000_000, 10, 3)),
            ..Trouble::default()
        }));
        assert!(matches!(lane.send(0, &mut effects), Passage::Twice(a, b) if a <= b));
        assert_eq!(effects, [0, 1, 1, 1]);
    }

    #[test]
    fn reordered_messages_overtake() {
        let mut lane = lane();
        let mut effects = [0];
        lane.set_trouble(Some(Trouble {
            reorder: Some((50_000, 0)),
            ..Trouble::default()
        }));
        for depart in 0..100 {
            lane.send(depart, &mut effects);
        }
        assert!(10 < effects[0]);
    }
}
