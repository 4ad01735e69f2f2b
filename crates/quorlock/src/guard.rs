//! The value that holds a lock, the signal of its loss, and work that ends with it.

mod lost_signal;
mod until_lost;
mod while_held;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorlock_core::fencing::Token;
use quorlock_core::name::Name;
use quorlock_core::owner::OwnerId;
use quorlock_core::renewal::{Lost, Status};
use quorlock_core::time::Time;

pub use self::lost_signal::LostSignal;
pub use self::while_held::Finished;
use crate::error::{ConfirmError, LeaseSource, ReleaseError};
use crate::operation::confirm::Confirm;
use crate::operation::release::Releasing;
use crate::shared::client::Client;
use crate::shared::hold::{Hold, NoEntry};
use crate::telemetry;

/// Holds a lock.
///
/// Without an explicit lease the watchdog renews it for as long as the guard lives. [`Guard::release`] gives it back
/// and says whether it had been held until then. Dropping the guard gives it back too, **in the background and without
/// a report**: nothing is sent before the client's keeper has had its turn.
///
/// A guard belongs to one hold. When that is lost, the guard stays lost, whatever happens to the name afterwards.
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    client: Arc<Client>,
    hold: Arc<Hold>,
    is_dropped_by: DroppedBy,
    span: telemetry::Span,
}

/// What the drop of a guard has to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DroppedBy {
    /// Release the lock.
    User,
    /// Nothing: it was released or leaked.
    Us,
}

impl Guard {
    /// Takes over one entry of the hold's count, for which the keeper has a place.
    pub(crate) fn new(client: Arc<Client>, hold: Arc<Hold>) -> Self {
        Guard {
            span: telemetry::hold_span(&*hold.layout, hold.owner, hold.token(0)),
            client,
            hold,
            is_dropped_by: DroppedBy::User,
        }
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    /// The token of this hold, larger than that of every hold of the name that was won before this one was asked for.
    ///
    /// Give it to the resource with every write; a resource that rejects smaller tokens than it has seen is safe even
    /// from a holder that was stopped and does not know that its time is over. Of several locks, this is the token of
    /// the first name in canonical order; see [`Guard::fencing_token_of`].
    #[must_use]
    pub fn fencing_token(&self) -> Token {
        self.hold.token(0)
    }

    /// The token for one of several names, as it was asked for or with its key prefix; `None` if the guard does not
    /// hold that name.
    #[must_use]
    pub fn fencing_token_of(&self, name: impl AsRef<[u8]>) -> Option<Token> {
        let name = name.as_ref();
        let layout = &self.hold.layout;
        let key = layout.names().position(|n| n.as_bytes() == name);
        let group = key.or_else(|| layout.given().position(|n| n.as_bytes() == name))?;
        Some(self.hold.token(group))
    }

    /// What is held, as it was asked for (without the key prefix), in canonical order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.hold.layout.given()
    }

    /// Under which identity the nodes have it.
    #[must_use]
    pub fn owner_id(&self) -> OwnerId {
        self.hold.owner
    }

    /// How many guards share this hold: 1, and one more for each re-entry.
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.hold.count()
    }

    /// For how long the lock may be relied upon from now on, if nothing else happens; zero when it is lost.
    ///
    /// This is the client's own reckoning, from the time before its requests were sent, less the drift allowance. No
    /// node is asked.
    #[must_use]
    pub fn validity(&self) -> Duration {
        let now = self.client.now();
        match self.hold.status(now) {
            Status::Held => self.hold.valid_until().since(now),
            Status::Releasing | Status::Lost(_) => Duration::ZERO,
        }
    }

    /// Whether the lock is held, by the same reckoning.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.status(self.client.now()) == Status::Held
    }

    /// Ready when the lock is lost, and how; at latest when its validity ends, even if no node answers.
    ///
    /// The signal outlives the guard; when the last guard is released on purpose it says [`Lost::Released`](crate::Lost::Released).
    ///
    /// In a loop around `select!` it may be made anew each time (`lost = guard.lost()`), or once, and polled by `&mut`: it is
    /// [`Unpin`], and stays ready once it is. The signal is looked at while `select!` waits, not while the body of a branch runs:
    /// there [`Guard::run_until_lost`] belongs.
    ///
    /// # Cancel safety
    /// Dropped early, nothing is missed: a signal that is made after the loss is ready at once.
    pub fn lost(&self) -> LostSignal {
        LostSignal::new(self.client.clone(), self.hold.clone())
    }

    /// Runs `work` while the lock is held, then releases it. The work is given this guard, for its token, its validity and
    /// [`Guard::extend`].
    ///
    /// Losing the lock drops `work` where it stands. The deadline is tested at every poll, before and after.
    ///
    /// ```
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # async fn write(token: u64) -> u64 { token }
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").acquire().await?;
    /// let done = guard.while_held(async |guard| write(guard.fencing_token().0).await).await?;
    /// if let Err(error) = &done.release {
    ///     eprintln!("{error}");
    /// }
    /// # assert_ne!(done.output, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Lost`], and `work` was cancelled, or ended too late to have been protected.
    ///
    /// # Cancel safety
    /// Dropped early, the work is dropped where it stands, and then the guard.
    pub async fn while_held<T>(
        self,
        work: impl AsyncFnOnce(&Guard) -> T,
    ) -> Result<Finished<T>, Lost> {
        let output = self.run_until_lost(work(&self)).await?;
        let release = self.release().await;
        Ok(Finished { output, release })
    }

    /// Runs `work` until the lock is lost, and keeps the lock: one step of a task that holds it for many.
    ///
    /// Losing the lock drops `work` where it stands. The deadline is tested at every poll, before and after. In contrast to
    /// [`Guard::while_held`] the guard stays, so that a loop can go on with it.
    ///
    /// ```
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # async fn store(_job: u32, token: u64) -> u64 { token }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// # let (jobs, mut queue) = tokio::sync::mpsc::channel(4);
    /// # jobs.send(42).await?;
    /// # drop(jobs);
    /// let guard = locks.lock("queue/7").acquire().await?;
    /// loop {
    ///     tokio::select! {
    ///         biased;
    ///         lost = guard.lost() => return Err(lost.into()),
    ///         job = queue.recv() => {
    ///             let Some(job) = job else { break };
    ///             // `?`: the lock was lost in the middle, and the job was dropped there.
    ///             guard.run_until_lost(store(job, guard.fencing_token().0)).await?;
    ///         }
    ///     }
    /// }
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Lost`], and `work` was cancelled, or ended too late to have been protected.
    ///
    /// # Cancel safety
    /// Dropped early, the work is dropped where it stands, and the lock is held as before.
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = pin!(work);
        let work = poll_fn(|cx| self.span.within(|| work.as_mut().poll(cx)));
        until_lost::run(self.lost(), work).await
    }

    /// Enters the hold once more; the lock is free when every guard is gone.
    ///
    /// The nodes are asked, and a threshold of them must say that the lock is still ours; it is extended thereby.
    ///
    /// # Errors
    /// [`ConfirmError::Lost`] when it is not; [`ConfirmError::Unconfirmed`] when too few nodes answered;
    /// [`ConfirmError::TooManyEntries`] for a read lock that was entered 1,000 times.
    ///
    /// # Cancel safety
    /// Dropped early, the hold is as it was.
    pub async fn reenter(&self) -> Result<Guard, ConfirmError> {
        Guard::enter(&self.client, &self.hold, Time::NEVER).await
    }

    /// Enters a hold once more. Nodes are waited for until this time, if they are given more.
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
        // From here on dropping the guard takes the entry back, whatever becomes of the hold's other guards.
        client.keeper.reserve();
        let guard = Guard::new(client.clone(), hold.clone());
        let confirm = Confirm::begin(client.clone(), hold.clone(), None)?;
        confirm.until(until).await?;
        Ok(guard)
    }

    /// Extends the lock to `lease` from now on, or to the lease that it has if that is longer.
    ///
    /// # Errors
    /// [`ConfirmError::Lost`] when the lock is not ours any more; [`ConfirmError::Unconfirmed`] when too few nodes
    /// answered, and the lock is valid for as long as it was; [`ConfirmError::Config`] for an impossible lease.
    ///
    /// # Cancel safety
    /// Dropped early, the lock may or may not have been extended.
    pub async fn extend(&self, lease: Duration) -> Result<(), ConfirmError> {
        let lease = self.client.config.lease(lease)?;
        self.hold.layout.check(LeaseSource::Lock, lease)?;
        Confirm::begin(self.client.clone(), self.hold.clone(), Some(lease))?.await
    }

    /// Gives the lock back. Of several guards of one hold, the last one frees it.
    ///
    /// # Errors
    /// [`ReleaseError::NotHeld`] when it had been lost before, also because the client was closed or its runtime has
    /// ended; [`ReleaseError::Unconfirmed`] when too few nodes
    /// answered: the release goes on in the background.
    ///
    /// # Cancel safety
    /// Dropped early, the release goes on in the background.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.is_dropped_by = DroppedBy::Us;
        let (client, hold) = (self.client.clone(), self.hold.clone());
        let result = match Releasing::begin(client, hold) {
            Ok(Some(releasing)) => releasing.await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.span.released(&result);
        result
    }

    /// Lets go of the guard without releasing the lock: it is not renewed, and ends with its lease.
    ///
    /// Useful to keep others out for a while after the work is done: for one lease those who wait for it, and for as long
    /// as the [`clock_margin`](crate::LocksBuilder::clock_margin) in addition those who did not look before. Other guards of the same hold end with it.
    pub fn leak(mut self) {
        self.is_dropped_by = DroppedBy::Us;
        self.client.keeper.unreserve(None);
        // The end of a leaked hold is no loss, and not told.
        if self.hold.leak() {
            telemetry::leaked();
        }
        self.client.keeper.reschedule(&self.hold);
        self.span.ended("leaked");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_dropped_by == DroppedBy::User {
            let (count, status) = self.hold.leave(self.client.now());
            self.client.keeper.dropped(&self.hold, count, status);
            self.span.ended(match status {
                Status::Lost(_) => "lost",
                Status::Held | Status::Releasing => "dropped",
            });
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("names", &self.hold.layout)
            .field("owner", &self.hold.owner)
            .field("token", &self.fencing_token())
            .field("validity", &self.validity())
            .finish_non_exhaustive()
    }
}
