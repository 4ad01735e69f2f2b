//! The signal of a hold's loss.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quorlock_core::renewal::Lost;
use quorlock_core::time::Time;

use super::until_lost;
use crate::shared::client::Client;
use crate::shared::hold::Hold;

/// A future that is ready when a lock is lost, and stays ready. See [`Guard::lost`](crate::Guard::lost).
///
/// It does not hold the lock, and may move to any task. Each task needs its own clone.
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

    /// Runs `work` until the lock is lost, in a task that does not have the guard. Otherwise it behaves like
    /// [`Guard::run_until_lost`](crate::Guard::run_until_lost).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # async fn step() -> u32 { 7 }
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").acquire().await?;
    /// let signal = guard.lost();
    /// let task = tokio::spawn(async move { signal.run_until_lost(step()).await });
    /// let done = task.await??; // the second error says how the lock was lost
    /// guard.release().await?;
    /// # assert_eq!(done, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Lost`] if the lock was lost: `work` was cancelled, or ended too late to have been protected.
    /// [`Lost::Released`] if the last guard was released before `work` was done.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the work is dropped at its current await point.
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        until_lost::run(self.clone(), work).await
    }
}

impl Clone for LostSignal {
    fn clone(&self) -> Self {
        // Each clone waits under its own key. With a shared key, the drop of A's signal would remove B's waker, and B
        // would never learn of the loss.
        LostSignal::new(self.client.clone(), self.hold.clone())
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
