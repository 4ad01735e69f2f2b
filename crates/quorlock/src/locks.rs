//! A client, from which locks are made.

pub(crate) mod source;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use quorlock_core::message::Mode;

use self::source::LockSource;
use crate::error::{AcquireError, ConfigError};
use crate::guard::Guard;
use crate::leader::{Candidate, LeaderObserver};
use crate::lock::Lock;
use crate::operate::{self, ForceReleaseError, ForceReleased, Inspection};
use crate::owner::Owner;
use crate::semaphore::Semaphore;
use crate::shared::client::Client;
use crate::ticket::Ticket;

/// A client of one node, or of a majority of several nodes.
///
/// Cloning is cheap; all clones are the same client.
///
/// # Names
/// A name is 1 to 512 bytes without NUL, and not a key under which the nodes store something else. **Making a lock, an
/// owner or a candidate sends nothing and never fails**, for every kind of lock. A lock that cannot be (a name is
/// invalid or one that the nodes cannot store, there are no names or too many, a fair lock has several nodes) is an
/// error when it is used: [`AcquireError::Config`](crate::AcquireError::Config) of [`Lock::acquire`],
/// [`Lock::try_acquire`] and [`Candidate::campaign`]. [`Locks::inspect`], [`Locks::force_release`] and
/// [`Locks::observe_leader`] use the name themselves, and return the error.
#[derive(Clone, Debug)]
pub struct Locks {
    source: LockSource,
}

impl Locks {
    /// The name that [`Locks::ready`] locks for a moment.
    pub const READY: &str = "quorlock/ready";

    pub(crate) fn new(source: LockSource) -> Self {
        Locks { source }
    }

    /// Returns a lock of this name.
    ///
    /// Nothing is sent. An invalid name is an error [when the lock is acquired](Locks#names).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// guard.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Plain, name)
    }

    /// Returns a fair lock of this name: first come, first served, across processes.
    ///
    /// Each waiter has a place in a queue on the node and is woken when its turn comes. A waiter loses its place when
    /// the node has not received a request from it for one
    /// [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease) (or four
    /// [`poll_cap`](crate::RetryPolicy::poll_cap)s, if that is longer), by the node's clock. A waiter that gives up
    /// leaves the queue. If it tries again, it starts at the end.
    ///
    /// A fair lock needs one node, because the queues of several nodes have no common order. On several nodes
    /// acquiring it is an error ([`ConfigError::FairQuorum`]).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let turn = locks.fair("queue").acquire().await?; // first come, first served
    /// turn.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Fair, name)
    }

    /// Returns a read lock of this name. Any number of readers can hold it at once; readers exclude writers.
    ///
    /// Each reader has its own lease. The token of its guard is that of the last writer: a store that has seen this
    /// token is up to date.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let one = locks.read("catalog").acquire().await?;
    /// let other = locks.read("catalog").acquire().await?; // readers share it
    /// assert!(locks.write("catalog").try_acquire().await?.is_none());
    /// # one.release().await?;
    /// # other.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Read, name)
    }

    /// Returns a write lock of this name. A writer excludes readers and other writers.
    ///
    /// A writer can also read, and can keep reading after it has released the write lock: acquire both through
    /// one [`Owner`](crate::Owner). A reader cannot become a writer
    /// ([`AcquireError::Upgrade`](crate::AcquireError::Upgrade)).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let owner = locks.owner();
    /// let writer = owner.write("catalog").acquire().await?;
    /// let reader = owner.read("catalog").acquire().await?; // a writer may read
    /// writer.release().await?; // from here on others may read, too
    /// reader.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Write, name)
    }

    /// Returns a lock of several names taken together (MultiLock): all of them or none.
    ///
    /// Duplicates are merged, and the order does not matter: clients that list the same names in different orders do
    /// not deadlock. At most [`Lock::MOST_NAMES`] names are allowed, which is checked [when the lock is
    /// acquired](Locks#names). For names in other modes or of other clients, see [`Lock::and`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let both = locks.all(["orders/42", "stock/7"]).acquire().await?;
    /// let token = both.fencing_token_of("stock/7"); // each name has its own
    /// both.release().await?;
    /// # assert!(token.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn all<N: AsRef<[u8]>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        self.source.all(names)
    }

    /// Returns a semaphore of this name: up to this many holders at once, each with a permit.
    ///
    /// Nothing is sent. An invalid name or number is an error when a permit is acquired.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let printers = locks.semaphore("printers", 2);
    /// let one = printers.acquire().await?;
    /// let other = printers.acquire().await?;
    /// assert!(printers.try_acquire().await?.is_none()); // two of two are held
    /// one.release().await?;
    /// # other.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(&self, name: impl AsRef<[u8]>, permits: usize) -> Semaphore {
        self.source.semaphore(name, permits)
    }

    /// Returns a new owner: an identity whose locks are reentrant.
    ///
    /// Acquiring a name through the same owner re-enters its hold. The identity is explicit because a task moves
    /// between threads and has no name that nodes could store.
    pub fn owner(&self) -> Owner {
        Owner::new(&self.source)
    }

    /// Continues the hold of a guard that another process has [handed over](crate::Guard::hand_over). Returns `None` if nothing is
    /// left of it: its lease has ended, it was adopted before, several clients tried it at the same moment and none got a majority
    /// of the nodes, or this client has other nodes or another key prefix.
    ///
    /// In one step each node passes the claim on. So of several clients with one ticket at most one gets the lock, and no one else
    /// has had it in between. The new guard has the lease of the one before, counted from now on, is
    /// renewed if that one was, and has a larger token. `max_hold` begins anew.
    ///
    /// # Errors
    /// Those of [`Lock::try_acquire`]. What nodes have passed on until then is released, as after every failed acquisition: acquire
    /// the lock anew.
    ///
    /// # Cancel safety
    /// If the future is dropped early, the lock is released in the background, or stays as it was.
    pub async fn adopt(&self, ticket: &Ticket) -> Result<Option<Guard>, AcquireError> {
        match self.source.continued(ticket)?.adopt(ticket).await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Contended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a candidate for the leadership of this name. Nothing is sent before it
    /// [campaigns](Candidate::campaign).
    ///
    /// The leader holds the ordinary lock of this name ([`Locks::lock`]), on the same key. So any holder of that lock
    /// keeps candidates out, including a Redisson client, and [`Locks::inspect`] shows the leader.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, LeaderEvent, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let mut candidacy = locks.leader("scheduler").campaign();
    /// while let Some(event) = candidacy.next().await {
    ///     match event {
    ///         LeaderEvent::Elected { term, leadership, .. } => {
    ///             println!("leads in term {term}");
    /// #           assert!(leadership.is_leading());
    /// #           break;
    ///         }
    ///         LeaderEvent::Lost { how, .. } => println!("leads no longer: {how}"),
    ///         LeaderEvent::Failed { error, .. } => println!("goes on, but: {error}"),
    /// #       _ => {}
    ///     }
    /// }
    /// candidacy.resign().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn leader(&self, name: impl AsRef<[u8]>) -> Candidate {
        Candidate::new(self.lock(name).electing())
    }

    /// Returns an observer of the leader of this name, which is not a candidate itself.
    ///
    /// # Errors
    /// [`ConfigError::Name`] if the name is invalid.
    pub fn observe_leader(&self, name: impl AsRef<[u8]>) -> Result<LeaderObserver, ConfigError> {
        let layout = self.lock(name).layout()?.clone();
        Ok(LeaderObserver::new(self.source.clone(), layout))
    }

    /// Reads the holder of a name from each node, and summarizes what that means. Changes nothing.
    ///
    /// It is intended for operators and their tools. The answer describes the past: to decide whether to work,
    /// acquire the lock instead. A node that cannot be read is part of the answer, not an error. Each node must
    /// answer within the member time-out of a lock with the watchdog's lease.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::operate::Summary;
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// let inspection = locks.inspect("orders/42").await?;
    /// println!("{inspection}");
    /// let owner = guard.owner_id().to_string();
    /// assert_eq!(inspection.summary(), Summary::Held { owner, nodes: 1 });
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::Name`] if the name is invalid.
    pub async fn inspect(&self, name: impl AsRef<[u8]>) -> Result<Inspection, ConfigError> {
        operate::inspect(&self.source, name).await
    }

    /// Releases a name by force, whichever owner holds it: for a holder that is known to be gone or stopped for good.
    ///
    /// **The holder is neither asked nor notified.** Its watchdog learns of it at the next renewal, within a third of
    /// its lease, and its guards are then lost ([`Lost::Taken`](crate::Lost::Taken)). A holder with an explicit lease
    /// sends no renewals and does not notice before its lease ends. Until the holder notices, two clients may work at
    /// once, unless the resource compares [fencing tokens](crate::Guard::fencing_token). Tokens keep growing, because
    /// the counter is not deleted.
    ///
    /// Locks of every mode are released, and all readers at once. If the name has no holder but the queue of the fair
    /// lock has a waiter, dead waiters at its head lose their places. If the first waiter is alive, only this waiter
    /// loses its place, and it joins again at the end. This frees a queue that is stuck behind a dead Redisson
    /// waiter. A key that is not a lock is left unchanged.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let node = EmbeddedNode::new();
    /// # let (dead, locks) = (Locks::on_node(node.clone())?, Locks::on_node(node)?);
    /// # let held = dead.lock("orders/42").acquire().await?;
    /// let report = locks.force_release("orders/42").await?;
    /// assert_eq!(report.freed(), 1); // the node ended a claim
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// # guard.release().await?;
    /// # held.leak();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ForceReleaseError::Unconfirmed`] if fewer nodes than a lock needs report that the name is free: its owner
    /// may still hold it. The error contains the same report.
    ///
    /// # Cancel safety
    /// If the future is dropped early, any of the nodes may or may not have released the name.
    pub async fn force_release(
        &self,
        name: impl AsRef<[u8]>,
    ) -> Result<ForceReleased, ForceReleaseError> {
        operate::force_release(&self.source, name).await
    }

    /// Checks that a lock could be acquired now, for the readiness check of a service.
    ///
    /// It acquires the lock of the name [`Locks::READY`], behind the key prefix, and releases it at once: two requests to each node. So it finds
    /// whatever an acquisition finds, such as nodes that do not answer, are quarantined, refuse writes or rights. A user whose
    /// rights are limited to other names checks one of these: `locks.lock(name).try_acquire()`.
    ///
    /// A service that cannot lock may still be able to do other work: let the check decide about readiness, and never about a restart, which
    /// would cure nothing and would end what is held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let status = match locks.ready().await {
    ///     Ok(()) => 200,
    ///     Err(error) => error.kind().to_http_status(),
    /// };
    /// # assert_eq!(status, 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Lock::acquire`] after one round, but for contention: if others check at the same time, a lock can be acquired.
    ///
    /// # Cancel safety
    /// If the future is dropped early, a clean-up continues in the background.
    pub async fn ready(&self) -> Result<(), AcquireError> {
        if let Some(guard) = self.lock(Self::READY).try_acquire().await? {
            // What is not confirmed is tried again in the background. The lock was granted.
            let _ = guard.release().await;
        }
        Ok(())
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        self.source.client()
    }

    /// Returns the number of holds of this client.
    #[must_use]
    pub fn held(&self) -> usize {
        self.client().keeper.len()
    }

    /// Releases everything this client holds, ends its acquisitions with [`Closed`](crate::AcquireError::Closed), and
    /// waits until no request of a lock is in flight. Nodes are probed no more.
    ///
    /// Existing guards become lost. So do locks over several clients that include names of this one ([`Lock::and`]).
    ///
    /// The wait is bounded by the nodes' call time-outs and a few retries. An acquisition whose future is neither
    /// polled nor dropped delays it by at most one member time-out; this includes a lock over several clients that
    /// another client drives.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks};
    /// # let locks = Locks::on_node(EmbeddedNode::new())?;
    /// let guard = locks.lock("orders/42").acquire().await?;
    /// locks.close().await; // before the process ends: nothing stays locked
    /// assert!(!guard.is_held());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// If the future is dropped early, closing continues in the background.
    pub async fn close(&self) {
        let client = self.client();
        client.close();
        let guests = client.party.guests();
        let patience = client.config.member_timeout(client.config.watchdog_lease);
        let patience = client.now() + patience;
        let mut timer = client.runtime.timer();
        poll_fn(|cx| {
            // The keepers are checked last. Suppose they were checked first, and A sees its keeper idle. Then B,
            // on another thread, ends its attempt, leaves its grants to the keeper and is no longer counted as an
            // attempt. A would then see no attempt either, and would report that nothing is left while B's grants
            // are still unreleased.
            let is_over =
                !client.party.has_attempts(cx.waker()) || timer.poll_until(cx, patience).is_ready();
            // Polls all of them, so that each wakes this task.
            let left = guests.iter();
            let left = left.filter(|guest| !guest.has_closed_others(cx.waker()));
            let (left, is_idle) = (left.count(), client.keeper.is_idle(cx.waker()));
            if left == 0 && is_idle && is_over {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
