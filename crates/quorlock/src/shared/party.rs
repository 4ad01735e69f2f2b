//! What a client states for its own nodes, also where a lock of another client has them among its members.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use quorlock_core::fencing::Fence;
use quorlock_core::message::Retention;
use quorlock_core::time::{WallMillis, millis_of};

use crate::config::Config;
use crate::mutex::Mutex;
use crate::sync::Counter;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A client as a party to locks over several clients: its settings hold for its own members, whichever client drives the lock.
#[derive(Debug)]
pub(crate) struct Party {
    /// Tells it from the other clients of the process.
    pub(crate) number: u64,
    /// No request to its nodes states a longer lease: a node that has forgotten everything is trusted again after that.
    pub(crate) longest_lease: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) retention: Retention,
    is_closed: AtomicBool,
    /// Other clients, which drive locks that have its nodes among their members.
    drivers: Mutex<Vec<Weak<dyn Driver>>>,
    /// Acquisitions under way that may have claims on its nodes, whichever client drives them.
    attempts: AtomicUsize,
    /// Tasks that wait until there are none.
    waiting: Mutex<Vec<Waker>>,
}

/// A client that drives locks with members of other clients.
pub(crate) trait Driver: fmt::Debug + Send + Sync {
    /// One of those other clients was closed: gives back the locks that have its nodes among their members.
    fn close_others(&self);

    /// Whether that has been done; if not, the task of `waker` is woken when it has.
    fn has_closed_others(&self, waker: &Waker) -> bool;
}

impl Party {
    pub(crate) fn new(config: &Config) -> Self {
        static NEXT: Counter = Counter::new();
        Party {
            number: NEXT.next(),
            longest_lease: config.longest_lease,
            max_hold: config.max_hold,
            retention: config.retention,
            is_closed: AtomicBool::new(false),
            drivers: Mutex::default(),
            attempts: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Another client drives a lock that has its nodes among the members.
    pub(crate) fn driven_by<D: Driver + 'static>(&self, driver: &Arc<D>) {
        let driver: Weak<D> = Arc::downgrade(driver);
        let driver: Weak<dyn Driver> = driver;
        let mut drivers = self.drivers.lock();
        drivers.retain(|known| 0 < known.strong_count());
        if !drivers.iter().any(|known| known.ptr_eq(&driver)) {
            drivers.push(driver);
        }
    }

    pub(crate) fn drivers(&self) -> Vec<Arc<dyn Driver>> {
        let drivers = self.drivers.lock();
        drivers.iter().filter_map(Weak::upgrade).collect()
    }

    /// Its nodes are not used any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// An acquisition has begun that asks its nodes.
    pub(crate) fn begin_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::SeqCst);
    }

    /// An acquisition has ended, and what it left behind is with its driver's keeper.
    pub(crate) fn end_attempt(&self) {
        self.attempts.fetch_sub(1, Ordering::SeqCst);
        // Either this sees that it was closed, or the one who closes sees the new count: both go by one order.
        if self.is_closed() {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether an acquisition is under way; if one is, the task of `waker` is woken when one has ended.
    pub(crate) fn has_attempts(&self, waker: &Waker) -> bool {
        {
            let mut waiting = self.waiting.lock();
            if !waiting.iter().any(|known| known.will_wake(waker)) {
                waiting.push(waker.clone());
            }
        }
        0 < self.attempts.load(Ordering::SeqCst)
    }

    /// How its nodes choose the token of a new hold.
    pub(crate) fn mint(&self, floor: WallMillis) -> Fence {
        Fence::Mint {
            floor,
            slack_millis: millis_of(self.longest_lease) / 4,
        }
    }
}

#[cfg(all(test, shuttle))]
mod threads {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[test]
    fn who_closes_a_client_hears_of_the_end_of_its_last_attempt() {
        let name = "who_closes_a_client_hears_of_the_end_of_its_last_attempt";
        quorlock_explore::explore_all(name, 10_000, async || {
            let party = Arc::new(Party {
                number: 1,
                longest_lease: Duration::from_secs(60),
                max_hold: None,
                retention: Retention::Forever,
                is_closed: AtomicBool::new(false),
                drivers: Mutex::default(),
                attempts: AtomicUsize::new(0),
                waiting: Mutex::default(),
            });
            party.begin_attempt();
            let ending = party.clone();
            drop(shuttle::future::spawn(async move { ending.end_attempt() }));
            party.close();
            let waiting = poll_fn(|cx| match party.has_attempts(cx.waker()) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            });
            waiting.await;
        });
    }
}
