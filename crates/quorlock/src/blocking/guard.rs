//! The value that holds a lock in blocking code.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use quorlock_core::fencing::Token;
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::renewal::Lost;

use super::driver::Driver;
use crate::error::{ConfirmError, HandOverError, ReleaseError};
use crate::ticket::Ticket;

/// A held lock, which is released when it is dropped. The thread that drops it waits for the release.
///
/// The watchdog renews it on the client's own thread, whatever the other threads do.
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    /// `None` once it has ended.
    guard: Option<crate::Guard>,
    driver: Arc<Driver>,
}

impl Guard {
    pub(super) fn new(guard: crate::Guard, driver: Arc<Driver>) -> Self {
        Guard {
            guard: Some(guard),
            driver,
        }
    }

    /// Returns the asynchronous guard, for what is not here.
    pub fn as_async(&self) -> &crate::Guard {
        let guard = self.guard.as_ref();
        guard.expect("BUG: only what consumes a guard takes it out")
    }

    /// Returns the token of this hold. See [`quorlock::Guard::fencing_token`](crate::Guard::fencing_token).
    #[must_use]
    pub fn fencing_token(&self) -> Token {
        self.as_async().fencing_token()
    }

    /// Returns the token for one of several names; `None` if the guard does not hold that name.
    #[must_use]
    pub fn fencing_token_of(&self, name: impl AsRef<[u8]>) -> Option<Token> {
        self.as_async().fencing_token_of(name)
    }

    /// Returns the held names, without the key prefix, in canonical order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.as_async().names()
    }

    /// Returns the identity under which the nodes store the claim.
    #[must_use]
    pub fn owner_id(&self) -> OwnerId {
        self.as_async().owner_id()
    }

    /// Returns the number of guards that share this hold: 1, and one more for each re-entry.
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.as_async().hold_count()
    }

    /// Returns how long the lock stays valid from now on without another renewal; zero if it is lost.
    #[must_use]
    pub fn validity(&self) -> Duration {
        self.as_async().validity()
    }

    /// Returns `true` if the lock is held. No request is sent.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.as_async().is_held()
    }

    /// Checks that the lock is held, for `guard.check()?` between two steps of the work. No request is sent.
    ///
    /// A step may take longer than the lock stays [valid](Guard::validity), as when the process is suspended. Only a resource that
    /// compares [tokens](Guard::fencing_token) is safe from that.
    ///
    /// # Errors
    /// How the lock was lost.
    pub fn check(&self) -> Result<(), Lost> {
        match self.as_async().lost().now_or_never() {
            Some(lost) => Err(lost),
            None => Ok(()),
        }
    }

    /// Waits until the lock is lost, but no longer than this. Returns how it was lost, if it was.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::blocking::Locks;
    /// # use quorlock::{EmbeddedNode, Lost};
    /// # use std::time::Duration;
    /// # let locks = Locks::start(async || quorlock::Locks::on_node(EmbeddedNode::new()))?;
    /// let lock = locks.lock("report").lease(Duration::from_millis(50));
    /// let guard = lock.acquire()?;
    /// assert_eq!(guard.wait_lost(Duration::from_secs(5)), Some(Lost::Expired));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn wait_lost(&self, at_most: Duration) -> Option<Lost> {
        let guard = self.as_async();
        let (mut lost, runtime) = (guard.lost(), guard.client().runtime.clone());
        let until = runtime.now() + at_most;
        self.driver.run(async move {
            let mut timer = runtime.timer();
            poll_fn(|cx| match lost.poll_unpin(cx) {
                Poll::Ready(lost) => Poll::Ready(Some(lost)),
                Poll::Pending => timer.poll_until(cx, until).map(|()| None),
            })
            .await
        })
    }

    /// Calls a function when the lock is lost, or has been lost, on a thread of its own. When the lock is released on purpose, the function is
    /// called with [`Lost::Released`](crate::Lost::Released). It may not be called if the client ends.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::blocking::Locks;
    /// # use quorlock::EmbeddedNode;
    /// # let locks = Locks::start(async || quorlock::Locks::on_node(EmbeddedNode::new()))?;
    /// let guard = locks.lock("report").acquire()?;
    /// guard.on_lost(|lost| eprintln!("stop the work: {lost}"));
    /// # guard.release()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_lost(&self, tell: impl FnOnce(Lost) + Send + 'static) {
        let lost = self.as_async().lost();
        self.driver.spawn(async move {
            let lost = lost.await;
            drop(tokio::task::spawn_blocking(move || tell(lost)));
        });
    }

    /// Extends the lock to `lease` from now on, or to its current lease if that is longer.
    ///
    /// # Errors
    /// Those of [`quorlock::Guard::extend`](crate::Guard::extend).
    pub fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        let extending = self.as_async().extending(lease)?;
        self.driver.run(extending)
    }

    /// Enters the hold once more. The lock is released when all its guards are gone.
    ///
    /// # Errors
    /// Those of [`quorlock::Guard::reenter`](crate::Guard::reenter).
    pub fn reenter(&self) -> Result<Guard, ConfirmError> {
        let entering = self.as_async().reentering();
        let guard = self.driver.run(entering)?;
        Ok(Guard::new(guard, self.driver.clone()))
    }

    /// Releases the lock, and reports whether it was held until then. Of several guards of one hold, the last one releases
    /// it.
    ///
    /// # Errors
    /// Those of [`quorlock::Guard::release`](crate::Guard::release).
    pub fn release(mut self) -> Result<(), ReleaseError> {
        match self.guard.take() {
            Some(guard) => self.driver.run(guard.release()),
            None => Ok(()),
        }
    }

    /// Ends this guard and returns a ticket, with which another process goes on holding the lock. See
    /// [`quorlock::Guard::hand_over`](crate::Guard::hand_over).
    ///
    /// # Errors
    /// [`HandOverError`](crate::errors::HandOverError) with this guard.
    pub fn hand_over(mut self) -> Result<Ticket, HandOverError<Guard>> {
        let guard = self.guard.take();
        let guard = guard.expect("BUG: a guard is taken when it ends");
        guard.hand_over().map_err(|error| {
            self.guard = Some(error.guard);
            HandOverError {
                names: error.names,
                guard: self,
                problem: error.problem,
            }
        })
    }

    /// Consumes the guard without releasing the lock, which is no longer renewed and ends with its lease.
    pub fn leak(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.leak();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            // A release that is not confirmed continues on the thread of the client.
            let _ = self.driver.run(guard.release());
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.guard, f)
    }
}
