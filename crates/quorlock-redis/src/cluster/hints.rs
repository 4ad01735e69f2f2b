//! Hints that slots may have new owners.

use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::connect::Endpoint;
use crate::sync::Mutex;

/// Hints that no look has followed yet. One look follows any number of them.
#[derive(Debug, Default)]
pub(super) struct ClusterHints {
    given: Notify,
    /// Nodes to query last.
    distrusted: Mutex<Vec<Endpoint>>,
}

impl ClusterHints {
    /// Requests another look.
    pub(super) fn look_again(&self) {
        self.given.notify_one();
    }

    /// Records that a node is unreachable or does not serve requests. Other nodes are queried first for the slot map.
    pub(super) fn distrust(&self, endpoint: &Endpoint) {
        let distrusted = self.distrusted.lock();
        let mut distrusted = distrusted.unwrap_or_else(PoisonError::into_inner);
        if !distrusted.contains(endpoint) {
            distrusted.push(endpoint.clone());
        }
        drop(distrusted);
        self.look_again();
    }

    /// Waits for a hint.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    pub(super) fn take_distrusted(&self) -> Vec<Endpoint> {
        let distrusted = self.distrusted.lock();
        std::mem::take(&mut *distrusted.unwrap_or_else(PoisonError::into_inner))
    }
}
