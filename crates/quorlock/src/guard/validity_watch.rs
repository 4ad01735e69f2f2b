//! The changes of a hold's validity.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::time::Time;

use crate::shared::client::Client;
use crate::shared::hold::Hold;

/// Observes the end of a lock's validity, which moves in both directions. See
/// [`Guard::watch_validity`](crate::Guard::watch_validity).
///
/// It does not hold the lock, and may move to any task.
pub struct ValidityWatch {
    client: Arc<Client>,
    hold: Arc<Hold>,
    /// The end of the validity at the last change; `None` when the hold was over, and before the first.
    known: Option<Time>,
    key: u64,
}

impl ValidityWatch {
    pub(crate) fn new(client: Arc<Client>, hold: Arc<Hold>) -> Self {
        ValidityWatch {
            client,
            hold,
            known: None,
            key: 0,
        }
    }

    /// Waits until the validity ends at another time than it did when this method last returned: a renewal has
    /// extended it, or a member reported that the claim is gone, and it ends earlier than before. The first call
    /// returns at once if the lock is held. The end of the hold is its last change: after it, the method never returns.
    ///
    /// Read the validity ([`Guard::validity`](crate::Guard::validity)) after it has returned.
    ///
    /// # Cancel safety
    /// If the future is dropped early, no change is missed: the next call returns at once.
    pub async fn changed(&mut self) {
        poll_fn(|cx| self.poll_changed(cx)).await;
    }

    /// Polls for the next change, as [`ValidityWatch::changed`] does.
    pub fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.client.now();
        match self.hold.watch_validity(cx, now, self.known, self.key) {
            Ok(key) => {
                self.key = key;
                Poll::Pending
            }
            Err(until) => {
                self.known = until;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for ValidityWatch {
    fn drop(&mut self) {
        self.hold.stop_watching(self.key);
    }
}

impl fmt::Debug for ValidityWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValidityWatch")
            .field("names", &self.hold.layout)
            .finish_non_exhaustive()
    }
}
