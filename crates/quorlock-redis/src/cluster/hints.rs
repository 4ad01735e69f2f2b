//! Hints that slots may have other owners.

use std::sync::PoisonError;

use tokio::sync::Notify;

use crate::connect::Endpoint;
use crate::sync::Mutex;

/// Hints that were given and not followed yet. Any number of them is followed by one look.
#[derive(Debug, Default)]
pub(super) struct ClusterHints {
    given: Notify,
    /// Nodes that are asked last.
    distrusted: Mutex<Vec<Endpoint>>,
}

impl ClusterHints {
    /// Asks for another look.
    pub(super) fn look_again(&self) {
        self.given.notify_one();
    }

    /// A node cannot be reached, or does not do what it is for: others are asked who owns what.
    pub(super) fn distrust(&self, endpoint: &Endpoint) {
        let distrusted = self.distrusted.lock();
        let mut distrusted = distrusted.unwrap_or_else(PoisonError::into_inner);
        if !distrusted.contains(endpoint) {
            distrusted.push(endpoint.clone());
        }
        drop(distrusted);
        self.look_again();
    }

    /// Waits until there is one.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    pub(super) fn take_distrusted(&self) -> Vec<Endpoint> {
        let distrusted = self.distrusted.lock();
        std::mem::take(&mut *distrusted.unwrap_or_else(PoisonError::into_inner))
    }
}
