//! A client: where locks come from.

pub(crate) mod source;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use quorlock_core::message::Mode;

use self::source::LockSource;
use crate::error::ConfigError;
use crate::leader::{Candidate, LeaderObserver};
use crate::lock::Lock;
use crate::operate::{self, ForceReleaseError, ForceReleased, Inspection};
use crate::owner::Owner;
use crate::shared::client::Client;

/// A client of one node, or of a majority of several. Cheap to clone; clones are the same client.
#[derive(Clone, Debug)]
pub struct Locks {
    source: LockSource,
}

impl Locks {
    pub(crate) fn new(source: LockSource) -> Self {
        Locks { source }
    }

    /// A lock of this name. Nothing is sent; a name that cannot be one is an error when the lock is acquired.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Plain, name)
    }

    /// A fair lock of this name: first come, first served, across processes.
    ///
    /// Each waiter has a place in a queue that the node keeps, and is woken when its turn has come. One that dies is
    /// passed over when the node has not heard of it for as long as [`LocksBuilder::watchdog_lease`](crate::LocksBuilder::watchdog_lease) says, by the
    /// node's clock; one that gives up leaves the queue. A waiter that comes back after a time-out begins at the end.
    ///
    /// It needs one node: several queues have no common order. On several, acquiring it is an error
    /// ([`ConfigError::FairQuorum`]).
    pub fn fair(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Fair, name)
    }

    /// The lock of this name for one of any number of readers, who keep writers out.
    ///
    /// Each reader has a lease of its own. The token of its guard is that of the last writer: a store that has seen it
    /// is up to date.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Read, name)
    }

    /// The lock of this name for one writer, who keeps everybody else out.
    ///
    /// A writer may read as well, and go on reading after it has stopped to write: acquire both through one
    /// [`Owner`](crate::Owner). A reader cannot become a writer ([`AcquireError::Upgrade`](crate::AcquireError::Upgrade)).
    pub fn write(&self, name: impl AsRef<[u8]>) -> Lock {
        self.source.one(Mode::Write, name)
    }

    /// Several locks taken together (MultiLock): all of them or none. Duplicates are merged, and the order does not
    /// matter: callers that name the same locks in different orders do not block each other for ever.
    ///
    /// # Errors
    /// [`ConfigError`] for no names, more than [`Lock::MOST_NAMES`], or one that cannot be one.
    pub fn all<N: AsRef<[u8]>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Lock, ConfigError> {
        self.source.all(names)
    }

    /// An identity that can enter its own locks again: acquiring a name through the same owner re-enters its hold.
    /// (A task is no identity: it has no name, and it moves between threads.)
    pub fn owner(&self) -> Owner {
        Owner::new(&self.source)
    }

    /// A candidate for the leadership of this name. Nothing is sent before it [campaigns](Candidate::campaign).
    ///
    /// The leader holds the ordinary lock of this name ([`Locks::lock`]), on the same key: a holder of that lock keeps
    /// candidates out, a lock of Redisson's included, and [`Locks::inspect`] shows the leader. A name that cannot be one
    /// is an error when the candidate campaigns.
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
        Candidate::new(self.lock(name))
    }

    /// Follows who leads under this name, without being a candidate.
    ///
    /// # Errors
    /// [`ConfigError::Name`] for a name that cannot be one.
    pub fn observe_leader(&self, name: impl AsRef<[u8]>) -> Result<LeaderObserver, ConfigError> {
        let layout = self.lock(name).layout()?.clone();
        Ok(LeaderObserver::new(self.source.clone(), layout))
    }

    /// Looks who holds a name: node by node, and what that amounts to. Changes nothing.
    ///
    /// For people and their tools. It is a picture of the past: do not decide by it whether to work, acquire the lock
    /// for that. A node that cannot be read is part of the answer, not an error of it. Each is given as long as it is
    /// given in a round of a lock with the watchdog's lease.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use quorlock::{EmbeddedNode, Locks, Summary};
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
    /// [`ConfigError::Name`] for a name that cannot be one.
    pub async fn inspect(&self, name: impl AsRef<[u8]>) -> Result<Inspection, ConfigError> {
        operate::inspect(&self.source, name).await
    }

    /// Frees a name by force, whichever owner holds it: for a holder that is known to be gone, or to be stopped for good.
    ///
    /// **The holder is not asked, and is not told.** Its watchdog learns of it at its next renewal, within a third of
    /// its lease, and its guards are then lost ([`Lost::Taken`](crate::Lost::Taken)); a holder with an explicit lease
    /// asks no node and learns nothing. Until then two may work at once, unless the resource compares
    /// [fencing tokens](crate::Guard::fencing_token): those keep growing, the counter stays.
    ///
    /// Locks of every mode are freed, readers all at once. Where the name has no holder, but a waiter stands in the queue of
    /// the fair lock, those at its head who are dead lose their places, or else the first, who then joins it again at the
    /// end if it lives: that frees a queue behind a dead waiter of a JVM. A key that is no lock stays as it is.
    ///
    /// # Errors
    /// [`ForceReleaseError::Unconfirmed`] when fewer nodes than a lock needs say that the name is free now: the owner that
    /// held it may hold it still. It has the same report.
    ///
    /// # Cancel safety
    /// Dropped early, any of the nodes may or may not have freed the name.
    pub async fn force_release(
        &self,
        name: impl AsRef<[u8]>,
    ) -> Result<ForceReleased, ForceReleaseError> {
        operate::force_release(&self.source, name).await
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        self.source.client()
    }

    /// How many holds this client has.
    #[must_use]
    pub fn held(&self) -> usize {
        self.client().keeper.len()
    }

    /// Gives back everything that is held, ends every acquisition with [`Closed`](crate::AcquireError::Closed), and
    /// waits until nothing is under way any more. Guards that are still out are lost. So are locks over several clients that
    /// have names of this one ([`Lock::all`]).
    ///
    /// It is bounded by the nodes' call time-outs and a few repetitions. An acquisition whose future is neither polled
    /// nor dropped is waited for no longer than its nodes are given to answer, also one of a lock over several clients that
    /// another of them drives.
    ///
    /// # Cancel safety
    /// Dropped early, closing goes on in the background.
    pub async fn close(&self) {
        let client = self.client();
        client.close();
        let drivers = client.party.drivers();
        let patience = client.config.member_timeout(client.config.watchdog_lease);
        let patience = client.now() + patience;
        let mut timer = client.runtime.timer();
        poll_fn(|cx| {
            // The keepers are asked last. Were they asked first, A's would be idle; then B, on another thread, ends its
            // attempt, leaves what it was granted to the keeper and counts itself out; and A would find no attempt either,
            // and say that nothing is left.
            let is_over =
                !client.party.has_attempts(cx.waker()) || timer.poll_until(cx, patience).is_ready();
            // All of them are asked, so that each wakes this task.
            let left = drivers.iter();
            let left = left.filter(|driver| !driver.has_closed_others(cx.waker()));
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
