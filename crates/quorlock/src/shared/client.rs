//! What all locks of one client share.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use quorlock_core::owner::{ClientId, OwnerId};
use quorlock_core::time::Time;

use crate::config::Config;
use crate::mutex::Mutex;
use crate::runtime::Runtime;
use crate::shared::keeper::Keeper;
use crate::shared::party::{Guest, Party};
use crate::shared::waiters::Waiters;
use crate::sync::atomic::{AtomicU64, Ordering};

/// A client: its settings, its identity, its keeper, and the waiters for its locks.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: Config,
    pub(crate) keeper: Arc<Keeper>,
    /// The waiters for its locks. Their queues are above this module, because each has an attempt that uses this
    /// client.
    pub(crate) waiters: Arc<dyn Waiters>,
    id: ClientId,
    next_number: AtomicU64,
    /// When this client may look again for those who hold a lock.
    looks_from: Mutex<Time>,
    pub(crate) party: Arc<Party>,
}

/// The shortest time between two looks of a client for those who hold a lock.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// Draws the random part of a client's identity.
pub(crate) fn draw_identity(runtime: &dyn Runtime) -> u128 {
    u128::from(runtime.random()) << 64 | u128::from(runtime.random())
}

impl Client {
    /// Creates a client with a new random identity, and connects its keeper to the waiters.
    pub(crate) fn new(
        config: Config,
        runtime: Arc<dyn Runtime>,
        keeper: Arc<Keeper>,
        party: Arc<Party>,
        waiters: Arc<dyn Waiters>,
    ) -> Self {
        let bits = config.identity.unwrap_or_else(|| draw_identity(&*runtime));
        keeper.tell_of_its_end(&waiters);
        Client {
            keeper,
            config,
            waiters,
            id: ClientId::from_random(bits),
            next_number: AtomicU64::new(1),
            looks_from: Mutex::new(Time::ZERO),
            party,
            runtime,
        }
    }

    /// Returns a new owner for one round. A number is never used twice. Otherwise a delayed release of a lost
    /// round could end A's claim in a later round that A won under the same number.
    pub(crate) fn fresh_owner_id(&self) -> OwnerId {
        OwnerId {
            client: self.id,
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.runtime.now()
    }

    /// Whether an error may name the clients that hold the lock: at most once in a second.
    pub(crate) fn may_look_for_holders(&self) -> bool {
        if !self.config.names_holders {
            return false;
        }
        let mut from = self.looks_from.lock();
        let now = self.now();
        let may_look = *from <= now;
        if may_look {
            *from = now + BETWEEN_LOOKS;
        }
        may_look
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.party.is_closed() || self.keeper.is_dead()
    }

    /// Ends every acquisition; the keeper releases what is held.
    pub(crate) fn close(&self) {
        self.party.close();
        self.waiters.close();
        self.keeper.close();
        // Locks of other clients that include these nodes end, too.
        for guest in self.party.guests() {
            guest.close_others();
        }
    }
}

impl Guest for Client {
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
