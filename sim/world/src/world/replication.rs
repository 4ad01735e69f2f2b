//! Answers that are held back until replicas have the write.

use crate::world::session::Connection;

use crate::world::call::{Answer, Call};
use crate::world::id::NodeId;
use crate::world::slab::Key;

/// The receiver of an answer that is held back.
#[derive(Debug)]
pub enum Waiter {
    /// A call, with its answer.
    Call(Key<Call>, Answer),
    /// A connection that is blocked in `WAIT`.
    Connection(Connection),
}

/// An answer that is held back until replicas have confirmed a write.
#[derive(Debug)]
pub struct AwaitedReplication {
    waiter: Waiter,
    node: NodeId,
    /// Each replica with the time at which its primary learns that the replica has the write, earliest first.
    confirmed: Vec<(NodeId, u64)>,
}

impl AwaitedReplication {
    pub(crate) fn new(waiter: Waiter, node: NodeId, mut confirmed: Vec<(NodeId, u64)>) -> Self {
        confirmed.sort_by_key(|(_, at)| *at);
        AwaitedReplication {
            waiter,
            node,
            confirmed,
        }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// Returns when this many replicas have confirmed, or `None` if there are fewer replicas.
    pub(crate) fn confirmed_by(&self, replicas: usize) -> Option<u64> {
        let last = replicas.checked_sub(1);
        last.map_or(Some(0), |last| self.confirmed.get(last).map(|(_, at)| *at))
    }

    /// Returns the replicas that have confirmed by this time.
    pub fn confirmed(&self, now: u64) -> impl Iterator<Item = NodeId> {
        let confirmed = self.confirmed.iter();
        confirmed
            .filter(move |(_, at)| *at <= now)
            .map(|(id, _)| *id)
    }

    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self.waiter, Waiter::Connection(_))
    }

    pub(crate) fn into_waiter(self) -> Waiter {
        self.waiter
    }
}
