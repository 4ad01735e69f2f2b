//! Enters a hold once more, and extends it: both need the nodes to confirm it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::time::Time;

use super::Guard;
use crate::error::{ConfirmError, LeaseSource};
use crate::operation::confirm::Confirm;
use crate::shared::client::Client;
use crate::shared::hold::{Hold, NoEntry};

impl Guard {
    /// Enters the hold once more. The lock is released when all its guards are gone.
    ///
    /// It sends a request to the nodes. A threshold of them must confirm that this owner still holds the lock, which
    /// also extends the lease.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let outer = locks.lock("orders/42").acquire().await?;
    /// let inner = outer.reenter().await?; // no second token, and no wait
    /// outer.release().await?;
    /// assert!(inner.is_held()); // the last guard frees the name
    /// inner.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConfirmError::Lost`] if the lock is lost; [`ConfirmError::Unconfirmed`] if too few nodes answered;
    /// [`ConfirmError::TooManyEntries`] for a read lock that was entered 1,000 times.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the hold stays as it was.
    pub async fn reenter(&self) -> Result<Guard, ConfirmError> {
        self.reentering().await
    }

    /// Like [`Guard::reenter`], but the future does not borrow this guard: it may be spawned, and outlive it.
    ///
    /// # Errors
    /// Those of [`Guard::reenter`].
    ///
    /// # Cancel safety
    /// That of [`Guard::reenter`].
    pub fn reentering(&self) -> impl Future<Output = Result<Guard, ConfirmError>> + Send + use<> {
        let (client, hold) = (self.client.clone(), self.hold.clone());
        async move { Guard::enter(&client, &hold, Time::NEVER).await }
    }

    /// Enters a hold once more. Waits for the nodes for at most the member time-out, and no longer than until `until`.
    pub(crate) async fn enter(
        client: &Arc<Client>,
        hold: &Arc<Hold>,
        until: Time,
    ) -> Result<Guard, ConfirmError> {
        let names = || hold.layout.title();
        hold.enter(client.now()).map_err(|why| match why {
            NoEntry::Lost(lost) => ConfirmError::Lost {
                names: names(),
                lost,
            },
            NoEntry::Full { most } => ConfirmError::TooManyEntries {
                names: names(),
                most,
            },
        })?;
        // From here on the drop of the guard removes the entry, even when the hold's other guards are gone by then.
        client.keeper.reserve();
        let guard = Guard::new(client.clone(), hold.clone());
        let confirm = Confirm::begin(client.clone(), hold.clone(), None)?;
        confirm.until(until).await?;
        Ok(guard)
    }

    /// Extends the lock to `lease` from now on, or to its current lease if that is longer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let lock = locks.lock("report").lease(Duration::from_secs(5));
    /// let guard = lock.acquire().await?;
    /// guard.extend(Duration::from_secs(20)).await?; // the work takes longer than was thought
    /// assert!(Duration::from_secs(10) < guard.validity());
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConfirmError::Lost`] if the lock is lost; [`ConfirmError::Unconfirmed`] if too few nodes answered, and the
    /// lock's validity is unchanged; [`ConfirmError::Config`] for an impossible lease.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the lock may or may not have been extended.
    pub async fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        self.extending(lease)?.await
    }

    /// Like [`Guard::extend`], but the future does not borrow this guard: it may be spawned, and outlive it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").lease(Duration::from_secs(5)).acquire().await?;
    /// let extended = tokio::spawn(guard.extending(Duration::from_secs(20))?);
    /// extended.await??;
    /// assert!(Duration::from_secs(10) < guard.validity());
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Guard::extend`]: a lost lock and an impossible lease at once, the others from the future.
    ///
    /// # Cancel safety
    /// That of [`Guard::extend`].
    pub fn extending(
        &self,
        lease: Duration,
    ) -> Result<impl Future<Output = Result<(), ConfirmError>> + Send + use<>, ConfirmError> {
        let lease = self.client.config.lease(lease)?;
        self.hold.layout.check(LeaseSource::Lock, lease)?;
        self.hold.layout.check_granted(lease)?;
        Confirm::begin(self.client.clone(), self.hold.clone(), Some(lease))
    }
}
