//! The link between a client and a node, and the impairments of its messages.

use crate::world::call::Call;
use crate::world::fault::ActiveFaults;
use crate::world::id::FaultId;
use crate::world::slab::Key;
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

    pub(crate) fn set_trouble(&mut self, trouble: Option<Impairment>) {
        let swallowed = self.trouble.take().and_then(|before| before.swallowed);
        self.trouble = trouble.map(Box::new);
        if let Some(by) = swallowed {
            self.swallow(by);
        }
    }

    fn swallow(&mut self, by: FaultId) {
        self.trouble.get_or_insert_default().swallowed = Some(by);
    }

    fn swallows(&self) -> bool {
        let trouble = self.trouble.as_ref();
        trouble.is_some_and(|trouble| trouble.swallowed.is_some())
    }

    fn swallow_no_more(&mut self) -> bool {
        let trouble = self.trouble.as_mut();
        trouble.is_some_and(|trouble| trouble.swallowed.take().is_some())
    }

    /// Delays messages: they arrive no earlier than if they were sent at `until`.
    fn say_nothing_until(&mut self, until: u64) {
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

/// The state of a connection, as the client knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionStatus {
    /// There is a connection.
    Up,
    /// There is none.
    Down,
    /// The client tries to connect.
    Connecting,
}

/// The link between a client and a node.
#[derive(Debug)]
pub struct Link {
    to_node: LinkDirection,
    to_client: LinkDirection,
    line: ConnectionStatus,
    /// Calls that wait for the connection.
    waiting: Vec<Key<Call>>,
    client_epoch: u32,
    /// The last connection that the node accepted; `u32::MAX` if it has ended at the node.
    node_epoch: u32,
    /// The first connection that the node serves. Requests on an older one are refused.
    first_served: u32,
    /// Whether the client has retired the connection that the node serves.
    is_retired: bool,
    /// Whether a call on the connection got no answer in time.
    is_doubtful: bool,
    /// Failed attempts to connect since the last successful one.
    failures: u32,
    lacks_scripts: Option<FaultId>,
}

impl Link {
    pub(crate) fn new(seed: u64, index: u64, min: u64, max: u64) -> Self {
        Link {
            to_node: LinkDirection::new(seed, 2 * index, min, max),
            to_client: LinkDirection::new(seed, 2 * index + 1, min, max),
            line: ConnectionStatus::Up,
            waiting: Vec::new(),
            client_epoch: 0,
            node_epoch: 0,
            first_served: 0,
            is_retired: false,
            is_doubtful: false,
            failures: 0,
            lacks_scripts: None,
        }
    }

    /// Sends a message from the client.
    #[inline]
    pub fn send_to_node(&mut self, departs: u64, faults: &mut ActiveFaults) -> Passage {
        self.to_node.send(departs, faults)
    }

    /// Sends a message from the node.
    #[inline]
    pub fn send_to_client(&mut self, departs: u64, faults: &mut ActiveFaults) -> Passage {
        self.to_client.send(departs, faults)
    }

    /// Sets the impairments of the link. Returns whether messages to the client could be lost until now and no longer
    /// can.
    pub(crate) fn set_troubles(
        &mut self,
        to_node: Option<Impairment>,
        to_client: Option<Impairment>,
    ) -> bool {
        let was_lossy = self.to_client.is_lossy();
        self.to_node.set_trouble(to_node);
        self.to_client.set_trouble(to_client);
        was_lossy && !self.to_client.is_lossy()
    }

    /// Delays everything that the node sends until this time.
    pub(crate) fn say_nothing_until(&mut self, until: u64) {
        self.to_client.say_nothing_until(until);
    }

    /// Makes the connection of the link, if there is one, swallow every message.
    pub(crate) fn swallow(&mut self, by: FaultId) {
        if self.line == ConnectionStatus::Up {
            self.to_node.swallow(by);
            self.to_client.swallow(by);
        }
    }

    /// Returns whether the connection swallows every message.
    pub fn swallows(&self) -> bool {
        self.to_node.swallows()
    }

    /// Records that a new connection replaces one that may swallow messages. Returns whether the previous one did.
    pub(crate) fn swallow_no_more(&mut self) -> bool {
        self.to_client.swallow_no_more();
        self.to_node.swallow_no_more()
    }

    /// Returns the fault that removed the scripts from the node, if the client has not noticed it. The next call then
    /// takes one more round trip, to send the script.
    pub fn lacks_scripts(&self) -> Option<FaultId> {
        self.lacks_scripts
    }

    /// Returns that fault, and notes that the client has noticed it.
    pub fn take_lacking_scripts(&mut self) -> Option<FaultId> {
        self.lacks_scripts.take()
    }

    pub(crate) fn forget_scripts(&mut self, by: FaultId) {
        self.lacks_scripts = Some(by);
    }
}

/// Methods about the connection of the link.
impl Link {
    pub(crate) fn line(&self) -> ConnectionStatus {
        self.line
    }

    /// Returns the number of the connection that the client uses.
    pub fn epoch(&self) -> u32 {
        self.client_epoch
    }

    /// Returns whether the node serves requests on this connection.
    pub(crate) fn is_served(&self, epoch: u32) -> bool {
        self.first_served <= epoch && epoch <= self.node_epoch
    }

    /// Returns whether there is a connection, and all calls on it were answered in time.
    pub(crate) fn is_usable(&self) -> bool {
        self.line == ConnectionStatus::Up && !self.is_doubtful
    }

    /// Records that a call on a connection got no answer in time. Returns whether it is the one in use.
    pub(crate) fn doubt(&mut self, epoch: u32) -> bool {
        let is_in_use = self.client_epoch == epoch && self.line == ConnectionStatus::Up;
        self.is_doubtful |= is_in_use;
        is_in_use
    }

    /// Records that the client replaces its connection. The node still executes what arrives on it.
    pub(crate) fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Returns the number of failed attempts to connect since the last successful one.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Begins to connect. Returns the number of the new connection.
    pub(crate) fn begin_connection(&mut self) -> u32 {
        self.line = ConnectionStatus::Connecting;
        self.is_doubtful = false;
        self.client_epoch += 1;
        self.client_epoch
    }

    /// Records that the node accepts a connection. The scripts are loaded with it.
    pub fn accept(&mut self, epoch: u32) {
        if !std::mem::take(&mut self.is_retired) {
            self.first_served = epoch;
        }
        self.node_epoch = epoch;
        self.lacks_scripts = None;
    }

    /// Ends the connection on the node's side.
    pub(crate) fn end_at_node(&mut self) {
        self.node_epoch = u32::MAX;
        self.first_served = u32::MAX;
        self.is_retired = false;
    }

    /// Establishes a connection on the client's side. Returns the calls that waited for it, or `None` if the client
    /// does not wait for this connection.
    pub fn connect(&mut self, epoch: u32) -> Option<Vec<Key<Call>>> {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Connecting {
            return None;
        }
        self.line = ConnectionStatus::Up;
        self.failures = 0;
        Some(std::mem::take(&mut self.waiting))
    }

    /// Fails a connection attempt on the client's side. Returns whether the client waits for this connection.
    pub(crate) fn fail_connection(&mut self, epoch: u32) -> bool {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Connecting {
            return false;
        }
        self.line = ConnectionStatus::Down;
        self.failures += 1;
        self.waiting.clear();
        true
    }

    /// Closes a connection on the client's side. Returns whether it is the one in use.
    pub fn close(&mut self, epoch: u32) -> bool {
        if self.client_epoch != epoch || self.line != ConnectionStatus::Up {
            return false;
        }
        self.line = ConnectionStatus::Down;
        true
    }

    /// Adds a call that waits for the connection.
    pub fn wait(&mut self, call: Key<Call>) {
        self.waiting.push(call);
    }

    /// Begins a process of the client. The first process starts with a connection.
    pub(crate) fn boot(&mut self, restarts: u16) {
        self.line = if restarts == 0 {
            ConnectionStatus::Up
        } else {
            ConnectionStatus::Down
        };
        self.waiting.clear();
        self.is_doubtful = false;
        self.failures = 0;
    }

    /// Invalidates the connection of a process that has ended. Later messages on it are ignored.
    pub(crate) fn forget_connection(&mut self) {
        self.client_epoch += 1;
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
