//! What will happen, in the order of true time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use quorlock::transport::Wake;

use crate::call::{Answer, Call};
use crate::node::Replicated;
use crate::runtime::Alarm;
use crate::slab::Key;
use crate::store::Write;
use crate::subscription::Subscribed;

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A request comes to its node.
    Request(Key<Call>),
    /// A reply comes to its client.
    Reply(Key<Call>, Key<Answer>),
    /// A timer is due, if this entry is its latest.
    Alarm(Key<Alarm>, u32),
    /// Calls of a client may be out of time.
    Deadlines(u16),
    /// The pause of a client is over, if it is this one.
    ResumeClient(u16, u32),
    /// A client is started again.
    BootClient(u16),
    /// A client asks a node to connect, on this connection.
    Connect(u16, u16, u32),
    /// A node accepts.
    Connected(u16, u16, u32),
    /// A node refuses.
    Refused(u16, u16, u32),
    /// A client hears that its connection has ended.
    Closed(u16, u16, u32),
    /// A client tries again to connect.
    Reconnect(u16, u16, u32),
    /// A subscription comes to its node.
    Subscribe(Key<Subscribed>, u32),
    /// A client subscribes again.
    Resubscribe(Key<Subscribed>, u32),
    /// A client hears that messages flow.
    Live(Key<Subscribed>, u32),
    /// What a node published comes to a client.
    Wake(Key<Subscribed>, Wake),
    /// The pause of a node is over, if it is this one.
    ResumeNode(u16, u32),
    /// A node is started again.
    RestartNode(u16),
    /// A node writes to its disk.
    Save(u16),
    /// A write of a primary comes to a replica.
    Replicate(Key<Replicated>),
    /// A client finds the new primary.
    Reroute(u16, u16),
    /// A fault begins.
    Begins(u16),
    /// A fault ends.
    Ends(u16),
    /// A write comes to the store.
    Write(Key<Write>),
    /// Its answer comes back.
    Written(Key<Write>),
    /// The clients stop working.
    Stop,
    /// The run is over.
    End,
}

impl What {
    /// For the trace: which kind, and of whom if that is not in the key.
    pub(crate) fn tag(self) -> u64 {
        let (kind, a, b) = match self {
            What::Request(_) => (1, 0, 0),
            What::Reply(..) => (2, 0, 0),
            What::Alarm(..) => (3, 0, 0),
            What::Deadlines(client) => (4, client, 0),
            What::ResumeClient(client, _) => (5, client, 0),
            What::BootClient(client) => (6, client, 0),
            What::Connect(client, node, _) => (7, client, node),
            What::Connected(client, node, _) => (8, client, node),
            What::Refused(client, node, _) => (9, client, node),
            What::Closed(client, node, _) => (10, client, node),
            What::Reconnect(client, node, _) => (11, client, node),
            What::Subscribe(..) => (12, 0, 0),
            What::Live(..) => (13, 0, 0),
            What::Wake(..) => (14, 0, 0),
            What::ResumeNode(node, _) => (15, node, 0),
            What::RestartNode(node) => (16, node, 0),
            What::Save(node) => (17, node, 0),
            What::Replicate(_) => (18, 0, 0),
            What::Reroute(client, node) => (19, client, node),
            What::Begins(fault) => (20, fault, 0),
            What::Ends(fault) => (21, fault, 0),
            What::Write(_) => (22, 0, 0),
            What::Written(_) => (23, 0, 0),
            What::Resubscribe(..) => (26, 0, 0),
            What::Stop => (24, 0, 0),
            What::End => (25, 0, 0),
        };
        kind | u64::from(a) << 8 | u64::from(b) << 24
    }
}

/// What happens, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) at: u64,
    sequence: u32,
    pub(crate) what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// Reversed: the heap of the standard library has its largest at the top.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Everything that will happen. What is due at one moment happens in the order in which it was pushed.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Event>,
    sequence: u32,
}

impl Events {
    pub(crate) fn push(&mut self, at: u64, what: What) {
        self.sequence = self.sequence.wrapping_add(1);
        self.heap.push(Event {
            at,
            sequence: self.sequence,
            what,
        });
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.heap.pop()
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.sequence = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_in_which_they_were_pushed() {
        let mut events = Events::default();
        for (at, fault) in [(5, 0), (3, 1), (5, 2), (3, 3), (4, 4)] {
            events.push(at, What::Begins(fault));
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop())
            .map(|event| match event.what {
                What::Begins(fault) => fault,
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(order, [1, 3, 4, 0, 2]);
        assert!(std::mem::size_of::<Event>() <= 32);
    }
}
