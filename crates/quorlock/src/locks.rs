//! A client: where locks come from.

mod source;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use quorlock_core::message::Mode;
use quorlock_core::quorum::Threshold;

pub(crate) use self::source::LockSource;
use crate::error::ConfigError;
use crate::lock::Lock;
use crate::shared::client::Client;
use crate::shared::layout::Node;

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
    pub fn lock(&self, name: impl AsRef<str>) -> Lock {
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
    pub fn fair(&self, name: impl AsRef<str>) -> Lock {
        self.source.one(Mode::Fair, name)
    }

    /// The lock of this name for one of any number of readers, who keep writers out.
    ///
    /// Each reader has a lease of its own. The token of its guard is that of the last writer: a store that has seen it
    /// is up to date.
    pub fn read(&self, name: impl AsRef<str>) -> Lock {
        self.source.one(Mode::Read, name)
    }

    /// The lock of this name for one writer, who keeps everybody else out.
    ///
    /// A writer may read as well, and go on reading after it has stopped to write: acquire both through one
    /// [`Owner`](crate::Owner). A reader cannot become a writer ([`AcquireError::Upgrade`](crate::AcquireError::Upgrade)).
    pub fn write(&self, name: impl AsRef<str>) -> Lock {
        self.source.one(Mode::Write, name)
    }

    /// Several locks taken together (MultiLock): all of them or none. Duplicates are merged, and the order does not
    /// matter: callers that name the same locks in different orders do not block each other for ever.
    ///
    /// # Errors
    /// [`ConfigError`] for no names, more than [`Lock::MOST_NAMES`], or one that cannot be one.
    pub fn all<N: AsRef<str>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Lock, ConfigError> {
        self.source.all(names)
    }

    pub(crate) fn source(&self) -> &LockSource {
        &self.source
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        self.source.nodes()
    }

    pub(crate) fn threshold(&self) -> Threshold {
        self.source.threshold()
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
            let is_idle = client.keeper.is_idle(cx.waker());
            let is_over =
                !client.party.has_attempts(cx.waker()) || timer.poll_until(cx, patience).is_ready();
            // All of them are asked, so that each wakes this task.
            let left = drivers.iter();
            let left = left.filter(|driver| !driver.has_closed_others(cx.waker()));
            if left.count() == 0 && is_idle && is_over {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}
