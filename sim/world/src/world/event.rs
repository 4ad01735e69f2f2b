//! The events of a run, in the order of true time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use quorlock::transport::Wake;

use crate::world::call::{Call, Replied};
use crate::world::callback::Job;
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat};
use crate::world::replication::AwaitedReplication;
use crate::world::slab::Key;
use crate::world::store::Write;
use crate::world::subscription::Subscribed;
use crate::world::timer::Alarm;
use crate::world::witnesses::Attendance;

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request arrives at its node.
    Request(Key<Call>),
    /// A reply arrives at its client.
    Reply(Key<Replied>),
    /// A timer fires, if this is its current entry.
    Alarm(Key<Alarm>, u32),
    /// Calls of a client may have timed out.
    Deadlines(ClientId),
    /// A pause of a client ends, if it is still the current one.
    ResumeClient(ClientId, u32),
    /// A client is restarted.
    BootClient(ClientId),
    /// A client's connection attempt arrives at a node. The number identifies the connection.
    Connect(ClientId, NodeId, u32),
    /// A node's acceptance of a connection arrives at the client.
    Connected(ClientId, NodeId, u32),
    /// A node's refusal of a connection arrives at the client.
    Refused(ClientId, NodeId, u32),
    /// The end of a connection becomes known to the client.
    Closed(ClientId, NodeId, u32),
    /// A connection attempt of a client times out.
    Reconnect(ClientId, NodeId, u32),
    /// The pause after a failed connection attempt of a client ends.
    Seek(ClientId, NodeId, u32),
    /// A node that a witness waits for can be reached.
    Reachable(Key<Attendance>),
    /// A subscription arrives at its node.
    Subscribe(Key<Subscribed>, u32),
    /// A client subscribes again.
    Resubscribe(Key<Subscribed>, u32),
    /// The confirmation of a subscription arrives at the client.
    Live(Key<Subscribed>, u32),
    /// A message that a node published arrives at a client.
    Wake(Key<Subscribed>, Wake),
    /// A pause of a node ends, if it is still the current one.
    ResumeNode(NodeId, u32),
    /// A node is restarted.
    RestartNode(NodeId),
    /// A node writes to its disk.
    Save(NodeId),
    /// A client learns of the new primary of a node of the plan.
    Reroute(ClientId, Seat),
    /// A fault begins.
    Begins(FaultId),
    /// A fault ends.
    Ends(FaultId),
    /// A power loss is imminent: what the node writes from now on is lost when the fault begins.
    Vain(FaultId),
    /// Replicas have confirmed a write, or the wait for them ends.
    Replicated(Key<AwaitedReplication>),
    /// A read or a write arrives at the store.
    Write(Key<Write>),
    /// The store's answer arrives at the client.
    Written(Key<Write>),
    /// A job of a user is due.
    Job(Key<Job>),
    /// A process that was stopped in the middle of a step continues.
    GoesOn,
    /// The remains of a process that ended while it was stopped are dropped.
    Bury,
    /// The simulated network of the turmoil lane takes a step.
    Step,
    /// The sentinels of a group take their next step.
    Watch(Seat),
    /// Another key of a slot is moved.
    Migrate(FaultId),
    /// The clients stop working.
    Stop,
    /// The run is over.
    End,
}

impl Event {
    /// Returns the event's contribution to the trace: its kind, and the client, node or fault if no key identifies
    /// them.
    #[inline]
    pub(crate) fn tag(self) -> u64 {
        let (kind, a, b) = match self {
            Event::Request(_) => (1, 0, 0),
            Event::Reply(_) => (2, 0, 0),
            Event::Alarm(..) => (3, 0, 0),
            Event::Deadlines(client) => (4, client.get(), 0),
            Event::ResumeClient(client, _) => (5, client.get(), 0),
            Event::BootClient(client) => (6, client.get(), 0),
            Event::Connect(client, node, _) => (7, client.get(), node.get()),
            Event::Connected(client, node, _) => (8, client.get(), node.get()),
            Event::Refused(client, node, _) => (9, client.get(), node.get()),
            Event::Closed(client, node, _) => (10, client.get(), node.get()),
            Event::Reconnect(client, node, _) => (11, client.get(), node.get()),
            Event::Seek(client, node, _) => (36, client.get(), node.get()),
            Event::Reachable(_) => (37, 0, 0),
            Event::Subscribe(..) => (12, 0, 0),
            Event::Live(..) => (13, 0, 0),
            Event::Wake(..) => (14, 0, 0),
            Event::ResumeNode(node, _) => (15, node.get(), 0),
            Event::RestartNode(node) => (16, node.get(), 0),
            Event::Save(node) => (17, node.get(), 0),
            Event::Reroute(client, node) => (19, client.get(), node.get()),
            Event::Begins(fault) => (20, fault.get(), 0),
            Event::Ends(fault) => (21, fault.get(), 0),
            Event::Vain(fault) => (33, fault.get(), 0),
            Event::Write(_) => (22, 0, 0),
            Event::Written(_) => (23, 0, 0),
            Event::Job(_) => (34, 0, 0),
            Event::Resubscribe(..) => (26, 0, 0),
            Event::Replicated(_) => (27, 0, 0),
            Event::Step => (28, 0, 0),
            Event::GoesOn => (29, 0, 0),
            Event::Bury => (30, 0, 0),
            Event::Watch(seat) => (31, seat.get(), 0),
            Event::Migrate(fault) => (35, fault.get(), 0),
            Event::Stop => (24, 0, 0),
            Event::End => (25, 0, 0),
        };
        kind | u64::from(a) << 8 | u64::from(b) << 24
    }
}

/// An event and the time at which it happens.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {
    /// When it happens, in true time.
    pub at: u64,
    sequence: u32,
    pub(crate) what: Event,
}

impl Scheduled {
    /// Returns the sort key of events.
    fn order(&self) -> (u64, u32) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The order is reversed, because the heap of the standard library has its largest element at the top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

/// All future events. Events of the same time happen in the order in which they were pushed.
///
/// Most events are messages that arrive within milliseconds. They are stored in a wheel whose slots are so short that
/// few events share one. Events farther in the future are stored in a heap.
#[derive(Debug)]
pub struct Events {
    /// The time of the event that was popped last. No event is earlier.
    now: u64,
    /// The slots of the wheel. Events in a slot are unordered, because there are few.
    near: [Vec<Scheduled>; SLOTS as usize],
    /// The slots that have events, one bit for each.
    filled: u128,
    far: BinaryHeap<Scheduled>,
    sequence: u32,
}

/// The number of slots of the wheel.
const SLOTS: u32 = u128::BITS;

/// The length of a slot as a power of two, in nanoseconds: half a millisecond.
const SLOT: u32 = 19;

impl Default for Events {
    fn default() -> Self {
        Events {
            now: 0,
            near: [const { Vec::new() }; SLOTS as usize],
            filled: 0,
            far: BinaryHeap::new(),
            sequence: 0,
        }
    }
}

impl Events {
    #[inline]
    pub(crate) fn push(&mut self, at: u64, what: Event) {
        self.sequence = self.sequence.wrapping_add(1);
        let at = at.max(self.now);
        let event = Scheduled {
            at,
            sequence: self.sequence,
            what,
        };
        let is_near = (at >> SLOT) - (self.now >> SLOT) < u64::from(SLOTS);
        let slot = slot(at);
        match self.near.get_mut(slot as usize) {
            Some(events) if is_near => {
                events.push(event);
                self.filled |= 1 << slot;
            }
            _ => self.far.push(event),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Scheduled> {
        let start = slot(self.now);
        let ahead = self.filled.rotate_right(start).trailing_zeros();
        let slot = (start + ahead) % SLOTS;
        let near = self.near.get_mut(slot as usize)?;
        let first = near
            .iter()
            .enumerate()
            .min_by_key(|(_, event)| event.order());
        let far = self.far.peek().map(Scheduled::order);
        let index = match first {
            Some((index, event)) if far.is_none_or(|far| event.order() < far) => index,
            _ => return self.pop_far(),
        };
        let event = near.swap_remove(index);
        if near.is_empty() {
            self.filled &= !(1 << slot);
        }
        self.now = event.at;
        Some(event)
    }

    fn pop_far(&mut self) -> Option<Scheduled> {
        let event = self.far.pop()?;
        self.now = event.at;
        Some(event)
    }

    pub(crate) fn clear(&mut self) {
        self.now = 0;
        self.near.iter_mut().for_each(Vec::clear);
        self.filled = 0;
        self.far.clear();
        self.sequence = 0;
    }
}

/// Returns the slot of a time within the wheel's range.
fn slot(at: u64) -> u32 {
    (at >> SLOT) as u32 % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_plan::draw::{Draw, Purpose};

    #[test]
    fn events_come_by_time_and_then_in_the_order_in_which_they_were_pushed() {
        let mut events = Events::default();
        for (at, fault) in [(5, 0), (3, 1), (5, 2), (3, 3), (4, 4)] {
            events.push(at, Event::Begins(FaultId::new(fault)));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop())
            .map(|event| match event.what {
                Event::Begins(fault) => fault.get(),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(order, [1, 3, 4, 0, 2]);
        // An event is small enough to be passed in registers.
        assert!(std::mem::size_of::<Event>() <= 16);
    }

    /// Checks each popped event against a sorted list of the same events. Some are near, some far, and some at the
    /// same time.
    #[test]
    fn near_and_far_events_come_in_one_order_while_more_are_pushed() {
        let mut draw = Draw::new(1, Purpose::Plan, 0);
        let mut events = Events::default();
        let mut expected = std::collections::BTreeSet::new();
        let mut now = 0;
        for number in 0..20_000u16 {
            let ahead = [
                0,
                1_000,
                3_000_000,
                130_000_000,
                140_000_000,
                10_000_000_000,
            ];
            let max = ahead[draw.index(ahead.len())];
            let at = now + draw.between(0, max);
            events.push(at, Event::Begins(FaultId::new(number)));
            expected.insert((at, number));
            while draw.chance(490_000) {
                let popped = events.pop().map(|event| match event.what {
                    Event::Begins(number) => (event.at, number.get()),
                    _ => unreachable!(),
                });
                assert_eq!(popped, expected.pop_first());
                now = popped.map_or(now, |(at, _)| at);
            }
        }
        assert!(!expected.is_empty());
    }
}
