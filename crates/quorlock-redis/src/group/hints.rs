//! Hints that a group may have a new primary.

use std::sync::{Arc, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;
use tokio::sync::Notify;

use crate::connect::Endpoint;
use crate::sync::Mutex;

/// Hints that no look has followed yet. One look follows any number of them.
#[derive(Debug, Default)]
pub(super) struct SentinelHints {
    given: Notify,
    /// The sentinel that published a change, which therefore knows of it.
    messenger: Mutex<Option<Endpoint>>,
}

impl SentinelHints {
    /// Returns a listener for what one sentinel publishes.
    pub(super) fn ear(self: &Arc<Self>, sentinel: Endpoint) -> Arc<SentinelListener> {
        let hints = Arc::clone(self);
        Arc::new(SentinelListener { hints, sentinel })
    }

    /// Waits for a hint.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    /// Requests another look.
    pub(super) fn look_again(&self) {
        self.given.notify_one();
    }

    pub(super) fn take_messenger(&self) -> Option<Endpoint> {
        let messenger = self.messenger.lock();
        messenger.unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The listener at one sentinel.
pub(super) struct SentinelListener {
    hints: Arc<SentinelHints>,
    sentinel: Endpoint,
}

impl Listener for SentinelListener {
    fn live(&self) {
        // Earlier messages of the sentinel were missed. This is no reason to query it first: it may have been cut off
        // for long, and be the last to learn of a failover.
        self.hints.look_again();
    }

    fn wake(&self, _: Wake) {
        let messenger = self.hints.messenger.lock();
        *messenger.unwrap_or_else(PoisonError::into_inner) = Some(self.sentinel.clone());
        self.hints.look_again();
    }
}
