//! The value that holds a lock.

#[cfg(feature = "store")]
mod check_in;
mod entering;
mod hand_over;
mod lost_signal;
mod until_lost;
mod validity_watch;
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
pub use self::validity_watch::ValidityWatch;
pub use self::while_held::Finished;
use crate::error::ReleaseError;
use crate::operation::pass::{Passed, pass};
use crate::operation::release::Releasing;
use crate::shared::client::Client;
use crate::shared::hold::Hold;
use crate::telemetry;

/// A held lock, which is released on drop.
///
/// Without an explicit lease the watchdog renews it while the guard exists. [`Guard::release`] releases the lock and
/// reports whether it was held until then. Dropping the guard releases it too, **in the background and without a
/// report**: nothing is sent before the client's keeper task runs.
///
/// A guard belongs to one hold. Once that hold is lost, the guard stays lost, whatever happens to the name afterwards.
#[must_use = "dropping a guard releases the lock"]
pub struct Guard {
    client: Arc<Client>,
    hold: Arc<Hold>,
    is_dropped_by: DroppedBy,
    /// Before this time a release leaves the lock locked.
    stays_until: Time,
    span: telemetry::Span,
}

/// Who ended the guard, which decides what its drop does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DroppedBy {
    /// The user dropped it: its drop releases the lock.
    User,
    /// It was released or leaked before: its drop does nothing.
    Us,
}

impl Guard {
    /// Takes over one entry of the hold's count. The keeper must have a place for its drop.
    pub(crate) fn new(client: Arc<Client>, hold: Arc<Hold>) -> Self {
        Guard {
            span: telemetry::hold_span(&*hold.layout, hold.owner, hold.token(0)),
            client,
            hold,
            is_dropped_by: DroppedBy::User,
            stays_until: Time::ZERO,
        }
    }

    /// Keeps the lock locked for at least this long from now on.
    pub(crate) fn at_least(mut self, least: Duration) -> Self {
        if !least.is_zero() {
            self.stays_until = self.client.now() + least;
        }
        self
    }

    /// Leaves a held lock to the keeper, which releases it later, if it is too early for that. Returns whether it did.
    fn stay(&mut self) -> bool {
        if self.stays_until == Time::ZERO {
            return false;
        }
        let now = self.client.now();
        let stays = now < self.stays_until && self.hold.status(now) == Status::Held;
        if stays {
            self.is_dropped_by = DroppedBy::Us;
            self.client.keeper.stay(self.stays_until, &self.hold);
            self.span.ended("stays");
        }
        stays
    }

    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the token of this hold. It is larger than that of every exclusive hold of the name that was won before
    /// this one was requested.
    ///
    /// Send it to the resource with every write. A resource that rejects tokens smaller than the largest it has seen
    /// is safe even from a holder that was suspended and does not know that its lease has expired. A read hold has
    /// the token of the last writer. For several locks this is the token of the first name in canonical order; see
    /// [`Guard::fencing_token_of`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").acquire().await?;
    /// let first = guard.fencing_token();
    /// guard.release().await?;
    /// let guard = locks.lock("report").acquire().await?;
    /// assert!(first < guard.fencing_token()); // so a resource can reject the first holder
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn fencing_token(&self) -> Token {
        self.hold.token(0)
    }

    /// Returns the token for one of several names, given with or without the key prefix; `None` if the guard does not
    /// hold that name.
    #[must_use]
    pub fn fencing_token_of(&self, name: impl AsRef<[u8]>) -> Option<Token> {
        let name = name.as_ref();
        let layout = &self.hold.layout;
        let key = layout.names().position(|n| n.as_bytes() == name);
        let group = key.or_else(|| layout.given().position(|n| n.as_bytes() == name))?;
        Some(self.hold.token(group))
    }

    /// Returns the held names, without the key prefix, in canonical order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.hold.layout.given()
    }

    /// Returns the identity under which the nodes store the claim. A hold that [passed on](Guard::release) inside a client has that of
    /// the hold before.
    #[must_use]
    pub fn owner_id(&self) -> OwnerId {
        self.hold.owner
    }

    /// Returns the number of guards that share this hold: 1, and one more for each re-entry.
    #[must_use]
    pub fn hold_count(&self) -> u32 {
        self.hold.count()
    }

    /// Returns how long the lock stays valid from now on without another renewal; zero if it is lost.
    ///
    /// Its end can move back: if a member reports that the claim is gone, the other members count alone.
    /// [`Guard::watch_validity`] reports such a change.
    ///
    /// The client computes it locally, from the time before its requests were sent, less the drift allowance. No
    /// request is sent.
    #[must_use]
    pub fn validity(&self) -> Duration {
        let now = self.client.now();
        match self.hold.status(now) {
            Status::Held => self.hold.valid_until().since(now),
            Status::Releasing | Status::Lost(_) => Duration::ZERO,
        }
    }

    /// Returns `true` if the lock is held, computed like [`Guard::validity`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").acquire().await?;
    /// assert!(guard.is_held());
    /// println!("valid for {:?} without another renewal", guard.validity());
    /// # guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.status(self.client.now()) == Status::Held
    }

    /// Returns a future that is ready when the lock is lost. It is ready by the end of the validity at the latest,
    /// even if no node answers.
    ///
    /// The signal may outlive the guard. When the last guard of the hold is released on purpose, the signal yields
    /// [`Lost::Released`](crate::Lost::Released).
    ///
    /// In a loop around `select!`, create it in each iteration (`lost = guard.lost()`), or once and poll it by
    /// `&mut`: it is [`Unpin`], and stays ready. `select!` polls the signal only while it waits, not while the body
    /// of a branch runs; use [`Guard::run_until_lost`] there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("report").acquire().await?;
    /// let lost = guard.lost();
    /// let watcher = tokio::spawn(async move { println!("it ended: {}", lost.await) });
    /// guard.release().await?;
    /// watcher.await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped early, no loss is missed: a signal that is created after the loss is ready at once.
    pub fn lost(&self) -> LostSignal {
        LostSignal::new(self.client.clone(), self.hold.clone())
    }

    /// Returns a watch that reports when the end of the validity moves, later or earlier.
    ///
    /// A process that acts for this one needs it: it is told until when the lock is valid, and must learn at once if
    /// that time moves back.
    ///
    /// ```
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// # let lease = std::time::Duration::from_secs(60);
    /// let guard = locks.lock("report").acquire().await?;
    /// let mut watch = guard.watch_validity();
    /// watch.changed().await;
    /// let before = guard.validity();
    /// guard.extend(lease).await?;
    /// watch.changed().await;
    /// assert!(before < guard.validity());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn watch_validity(&self) -> ValidityWatch {
        ValidityWatch::new(self.client.clone(), self.hold.clone())
    }

    /// Runs `work` while the lock is held, then releases it. `work` borrows this guard, for its token, its validity
    /// and [`Guard::extend`].
    ///
    /// If the lock is lost, `work` is dropped at its current await point. The deadline is checked before and after
    /// every poll.
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
    /// [`Lost`] if the lock was lost: `work` was cancelled, or ended too late to have been protected.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the work is dropped at its current await point, and then the guard.
    pub async fn while_held<T>(
        self,
        work: impl AsyncFnOnce(&Guard) -> T,
    ) -> Result<Finished<T>, Lost> {
        let output = self.run_until_lost(work(&self)).await?;
        let release = self.release().await;
        Ok(Finished { output, release })
    }

    /// Runs `work` until the lock is lost, and keeps the lock afterwards.
    ///
    /// Use it for one step of a task that holds the lock for many steps: in contrast to [`Guard::while_held`], the
    /// guard stays.
    ///
    /// If the lock is lost, `work` is dropped at its current await point. The deadline is checked before and after
    /// every poll.
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
    ///             // `?` returns if the lock was lost; the job was dropped at its await point.
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
    /// [`Lost`] if the lock was lost: `work` was cancelled, or ended too late to have been protected.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the work is dropped at its current await point, and the lock stays held.
    pub async fn run_until_lost<T>(&self, work: impl Future<Output = T>) -> Result<T, Lost> {
        let mut work = pin!(work);
        let work = poll_fn(|cx| self.span.within(|| work.as_mut().poll(cx)));
        until_lost::run(self.lost(), work).await
    }

    /// Releases the lock. Of several guards of one hold, the last one releases it. Before the time of
    /// [`Lock::at_least`](crate::Lock::at_least) it returns at once, and the client releases the lock then.
    ///
    /// If another caller of this client waits for a plain lock that the watchdog renews, the lock passes on to it without a release, at
    /// most eight times and for at most 25 ms, and not while other clients are known to wait. The first time the nodes confirm that it
    /// was held; after that, the answer is what the client knows.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, ReleaseError};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// match guard.release().await {
    ///     Ok(()) => println!("it was held until now"),
    ///     Err(error @ ReleaseError::NotHeld { .. }) => println!("check the work: {error}"),
    ///     Err(error) => println!("it continues in the background: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ReleaseError::NotHeld`] if the lock was already lost, for example because the client was closed or its
    /// runtime has ended; [`ReleaseError::Unconfirmed`] if too few nodes answered: the release continues in the
    /// background.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the release continues in the background.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        if self.stay() {
            return Ok(());
        }
        let result = match pass(&self.client, &self.hold).await {
            Passed::On => {
                self.is_dropped_by = DroppedBy::Us;
                Ok(())
            }
            Passed::Not(hold) => self.end(hold).await,
        };
        self.span.released(&result);
        result
    }

    async fn end(&mut self, hold: Arc<Hold>) -> Result<(), ReleaseError> {
        self.is_dropped_by = DroppedBy::Us;
        match Releasing::begin(self.client.clone(), hold) {
            Ok(Some(releasing)) => releasing.await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Consumes the guard without releasing the lock, which is no longer renewed and ends with its lease.
    ///
    /// It is useful to keep others out for a while after the work is done. Clients that already wait for the lock are
    /// kept out for one lease. Clients that arrive later wait for the
    /// [`clock_margin`](crate::LocksBuilder::clock_margin) as well. All other guards of the same hold end with it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # use std::time::Duration;
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let lock = locks.lock("reminder/7").lease(Duration::from_secs(20));
    /// let guard = lock.acquire().await?;
    /// guard.leak(); // no second reminder until the lease ends
    /// assert!(lock.try_acquire().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn leak(mut self) {
        self.is_dropped_by = DroppedBy::Us;
        self.client.keeper.unreserve(None);
        // The end of a leaked hold is intended: it is neither counted nor logged as a loss.
        if self.hold.leak() {
            telemetry::leaked();
        }
        self.client.keeper.reschedule(&self.hold);
        self.span.ended("leaked");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_dropped_by == DroppedBy::User && !self.stay() {
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
