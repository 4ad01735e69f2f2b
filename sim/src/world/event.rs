//! Event will happen, in the order of true time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use quorlock::transport::Wake;

use crate::world::call::{Call, Replied};
use crate::world::id::{ClientId, FaultId, Id, NodeId, Seat};
use crate::world::job::Job;
use crate::world::replication::AwaitedReplication;
use crate::world::slab::Key;
use crate::world::store::Write;
use crate::world::subscription::Subscribed;
use crate::world::timer::Alarm;

/// Event happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A request comes to its node.
    Request(Key<Call>),
    /// A reply comes to its client.
    Reply(Key<Replied>),
    /// A timer is due, if this entry is its latest.
    Alarm(Key<Alarm>, u32),
    /// Calls of a client may be out of time.
    Deadlines(ClientId),
    /// The pause of a client is over, if it is this one.
    ResumeClient(ClientId, u32),
    /// A client is started again.
    BootClient(ClientId),
    /// A client asks a node to connect, on this connection.
    Connect(ClientId, NodeId, u32),
    /// A node accepts.
    Connected(ClientId, NodeId, u32),
    /// A node refuses.
    Refused(ClientId, NodeId, u32),
    /// A client hears that its connection has ended.
    Closed(ClientId, NodeId, u32),
    /// A client tries again to connect.
    Reconnect(ClientId, NodeId, u32),
    /// A subscription comes to its node.
    Subscribe(Key<Subscribed>, u32),
    /// A client subscribes again.
    Resubscribe(Key<Subscribed>, u32),
    /// A client hears that messages flow.
    Live(Key<Subscribed>, u32),
    /// Event a node published comes to a client.
    Wake(Key<Subscribed>, Wake),
    /// The pause of a node is over, if it is this one.
    ResumeNode(NodeId, u32),
    /// A node is started again.
    RestartNode(NodeId),
    /// A node writes to its disk.
    Save(NodeId),
    /// A client finds the new primary.
    Reroute(ClientId, Seat),
    /// A fault begins.
    Begins(FaultId),
    /// A fault ends.
    Ends(FaultId),
    /// Event a node writes from now on is lost when a fault begins.
    Vain(FaultId),
    /// Replicas have confirmed a write, or are not waited for any more.
    Replicated(Key<AwaitedReplication>),
    /// A write comes to the store.
    Write(Key<Write>),
    /// Its answer comes back.
    Written(Key<Write>),
    /// Something of a user's own is due.
    Job(Key<Job>),
    /// A process that was stopped in the middle of a step goes on.
    GoesOn,
    /// Event is left of a process that ended while it was stopped is dropped.
    Bury,
    /// A step of everything that has to do with sockets.
    Step,
    /// The sentinels of a group look around.
    Watch(Seat),
    /// Another key of a slot is moved.
    Migrate(FaultId),
    /// The clients stop working.
    Stop,
    /// The run is over.
    End,
}

impl Event {
    /// For the trace: which kind, and of whom if that is not in the key.
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

/// Event happens, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    /// When, in true time.
    pub(crate) at: u64,
    sequence: u32,
    pub(crate) what: Event,
}

impl Scheduled {
    /// By which events are put in order.
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
    /// Reversed: the heap of the standard library has its largest at the top.
    fn cmp(&self, other: &Self) -> Ordering {
        other.order().cmp(&self.order())
    }
}

/// Everything that will happen. Event is due at one moment happens in the order in which it was pushed.
///
/// Most events are messages that arrive within milliseconds: they lie in a wheel of slots that are so short that few
/// share one. Event is farther away lies in a heap.
#[derive(Debug)]
pub(crate) struct Events {
    /// When the last event was due that was popped. Nothing is due before.
    now: u64,
    /// In a slot events lie in any order: there are few.
    near: [Vec<Scheduled>; SLOTS as usize],
    /// Which slots have events, bit by bit.
    filled: u128,
    far: BinaryHeap<Scheduled>,
    sequence: u32,
}

/// How many slots the wheel has.
const SLOTS: u32 = u128::BITS;

/// A slot is so many nanoseconds long, as a power of two: half a millisecond.
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

/// The slot of a moment that is near.
fn slot(at: u64) -> u32 {
    (at >> SLOT) as u32 % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::draw::{Draw, Purpose};

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
        // Small enough to be passed in registers.
        assert!(std::mem::size_of::<Event>() <= 16);
    }

    /// Whatever it pops, it is what a sorted list of the same events has first: near, far, and at one moment.
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
            let most = ahead[draw.index(ahead.len())];
            let at = now + draw.between(0, most);
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
