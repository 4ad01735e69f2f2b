//! Hints that slots may have new owners.

use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::connect::Endpoint;
use crate::sync::{Mutex, MutexGuard};

/// Hints that no look has followed yet. One look follows any number of them.
#[derive(Debug, Default)]
pub(super) struct ClusterHints {
    given: Notify,
    opinions: Mutex<Opinions>,
}

/// What hints have said about nodes.
#[derive(Debug, Default)]
pub(super) struct Opinions {
    /// Nodes that know of a change, which others may not have learned yet.
    informed: Vec<Endpoint>,
    /// Nodes that are unreachable or do not serve requests.
    distrusted: Vec<Endpoint>,
}

impl Opinions {
    /// Returns the rank of a node in the order in which the nodes are queried.
    pub(super) fn rank(&self, node: &Endpoint) -> u8 {
        if self.informed.contains(node) {
            0
        } else if self.distrusted.contains(node) {
            2
        } else {
            1
        }
    }
}

impl ClusterHints {
    /// Requests another look.
    pub(super) fn look_again(&self) {
        self.given.notify_one();
    }

    /// Records that a node is unreachable or does not serve requests. Other nodes are queried first for the slot map.
    pub(super) fn distrust(&self, endpoint: &Endpoint) {
        note(&mut self.lock().distrusted, endpoint);
        self.look_again();
    }

    /// Records that a node knows the new owner of a slot that it had. It is queried first for the slot map.
    ///
    /// Suppose A's replica B is promoted, and A ends the client's subscription. If the client queried C, which learns
    /// of the promotion a millisecond later, C would still name A, and the client would stay there.
    pub(super) fn believe(&self, endpoint: &Endpoint) {
        note(&mut self.lock().informed, endpoint);
        self.look_again();
    }

    /// Waits for a hint.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    /// Returns the opinions since the last call.
    pub(super) fn take_opinions(&self) -> Opinions {
        std::mem::take(&mut *self.lock())
    }

    /// The mutex is held for a few instructions, never across an await.
    fn lock(&self) -> MutexGuard<'_, Opinions> {
        self.opinions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note(nodes: &mut Vec<Endpoint>, endpoint: &Endpoint) {
    if !nodes.contains(endpoint) {
        nodes.push(endpoint.clone());
    }
}
