//! What all locks of one client share.

use std::sync::Arc;
use std::task::Waker;

use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::Time;

use crate::config::Config;
use crate::runtime::Runtime;
use crate::shared::keeper::Keeper;
use crate::shared::party::{Driver, Party};
use crate::shared::waiters::Waiters;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: Config,
    pub(crate) keeper: Arc<Keeper>,
    /// Those who wait for its locks. Their queues stand above it: each has an attempt that is made with this client.
    pub(crate) waiters: Arc<dyn Waiters>,
    id: ClientId,
    next_number: AtomicU64,
    pub(crate) party: Arc<Party>,
    /// Whether an operator was told that a wait began for what the client itself holds.
    pub(crate) has_waited_for_itself: AtomicBool,
}

impl Client {
    /// A client with an identity of its own, and its keeper's task.
    pub(crate) fn new(
        config: Config,
        runtime: Arc<dyn Runtime>,
        keeper: Arc<Keeper>,
        party: Arc<Party>,
        waiters: Arc<dyn Waiters>,
    ) -> Self {
        let bits = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
        keeper.tell_of_its_end(&waiters);
        Client {
            keeper,
            config,
            waiters,
            id: ClientId::from_random(bits),
            next_number: AtomicU64::new(1),
            party,
            has_waited_for_itself: AtomicBool::new(false),
            runtime,
        }
    }

    /// The owner of one round. A number for which a release may have been sent is never asked with again: a delayed
    /// release of the lost round would land on the won one.
    pub(crate) fn next_owner(&self) -> OwnerId {
        OwnerId {
            client: self.id,
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.runtime.now()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.party.is_closed() || self.keeper.is_dead()
    }

    /// Ends every acquisition; what is held is the keeper's to give back.
    pub(crate) fn close(&self) {
        self.party.close();
        self.waiters.close();
        self.keeper.close();
        // Locks of others that have its nodes among their members end, too.
        for driver in self.party.drivers() {
            driver.close_others();
        }
    }
}

impl Driver for Client {
    fn close_others(&self) {
        self.waiters.close();
        self.keeper.close_others();
    }

    fn has_closed_others(&self, waker: &Waker) -> bool {
        self.keeper.has_closed_others(waker)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.keeper.finish();
    }
}
