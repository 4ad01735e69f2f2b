//! The signal of a hold's loss.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::renewal::Lost;
use quorlock_core::time::Time;

use crate::shared::client::Client;
use crate::shared::hold::Hold;

/// A future that is ready when a lock is lost. See [`Guard::lost`](crate::Guard::lost).
#[must_use = "futures do nothing unless polled"]
pub struct LostSignal {
    client: Arc<Client>,
    hold: Arc<Hold>,
    key: u64,
}

impl LostSignal {
    pub(crate) fn new(client: Arc<Client>, hold: Arc<Hold>) -> Self {
        LostSignal {
            client,
            hold,
            key: 0,
        }
    }
}

impl Future for LostSignal {
    type Output = Lost;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lost> {
        let now: Time = self.client.now();
        match self.hold.wait_for_loss(cx, now, self.key) {
            Ok(key) => {
                self.key = key;
                Poll::Pending
            }
            Err(lost) => Poll::Ready(lost),
        }
    }
}

impl Drop for LostSignal {
    fn drop(&mut self) {
        self.hold.stop_waiting(self.key);
    }
}

impl fmt::Debug for LostSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LostSignal")
            .field("names", &self.hold.layout)
            .finish_non_exhaustive()
    }
}
