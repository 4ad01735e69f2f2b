//! Hints that the primary of a group may be another one.

use std::sync::{Arc, PoisonError};

use quorlock_core::message::Wake;
use quorlock_core::transport::Listener;
use tokio::sync::Notify;

use crate::connect::Endpoint;
use crate::sync::Mutex;

/// Hints that were given and not followed yet. Any number of them is followed by one look.
#[derive(Debug, Default)]
pub(super) struct SentinelHints {
    given: Notify,
    /// The sentinel that published a change, and so knows of it.
    messenger: Mutex<Option<Endpoint>>,
}

impl SentinelHints {
    /// Hears what one sentinel publishes.
    pub(super) fn ear(self: &Arc<Self>, sentinel: Endpoint) -> Arc<SentinelListener> {
        let hints = Arc::clone(self);
        Arc::new(SentinelListener { hints, sentinel })
    }

    /// Waits until there is one.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    /// Asks for another look.
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
        // What it published before was missed. It is not the first one to be asked for that: it may have been cut off for
        // long, and be the last to hear of a failover.
        self.hints.look_again();
    }

    fn wake(&self, _: Wake) {
        let messenger = self.hints.messenger.lock();
        *messenger.unwrap_or_else(PoisonError::into_inner) = Some(self.sentinel.clone());
        self.hints.look_again();
    }
}
