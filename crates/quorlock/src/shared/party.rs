//! The settings of a client for its own nodes, which also apply in locks of other clients.

use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use quorlock_core::message::Retention;

use crate::config::Config;
#[cfg(feature = "metrics")]
use crate::metrics::NameLabels;
use crate::mutex::Mutex;
use crate::shared::seen_tokens::SeenTokens;
use crate::sync::Counter;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A client as a party to locks over several clients. Its settings apply to its own members, whichever client drives
/// the lock.
#[derive(Debug)]
pub(crate) struct Party {
    /// A number that is unique in the process.
    pub(crate) number: u64,
    /// The longest lease in requests to its nodes. A node that lost its data is trusted again after this time, so a
    /// longer lease would outlast the quarantine.
    pub(crate) longest_lease: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) retention: Retention,
    #[cfg(feature = "metrics")]
    pub(crate) name_labels: Option<Arc<NameLabels>>,
    /// The tokens of names on its nodes.
    pub(crate) seen: SeenTokens,
    is_closed: AtomicBool,
    /// Other clients that drive locks with members of this one.
    guests: Mutex<Vec<Weak<dyn Guest>>>,
    /// Acquisitions in progress that may have claims on its nodes, whichever client drives them.
    attempts: AtomicUsize,
    /// Tasks that wait until there are no such acquisitions.
    waiting: Mutex<Vec<Waker>>,
}

/// A client that drives locks with members of other clients: a guest at their nodes.
pub(crate) trait Guest: fmt::Debug + Send + Sync {
    /// Releases the locks that include nodes of another client, because that client was closed.
    fn close_others(&self);

    /// Whether those locks are released; if not, the task of `waker` is woken when they are.
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
            #[cfg(feature = "metrics")]
            name_labels: config.name_labels.clone(),
            seen: SeenTokens::default(),
            is_closed: AtomicBool::new(false),
            guests: Mutex::default(),
            attempts: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Registers another client that drives a lock with members of this one.
    pub(crate) fn used_by<G: Guest + 'static>(&self, guest: &Arc<G>) {
        let guest: Weak<G> = Arc::downgrade(guest);
        let guest: Weak<dyn Guest> = guest;
        let mut guests = self.guests.lock();
        guests.retain(|known| 0 < known.strong_count());
        if !guests.iter().any(|known| known.ptr_eq(&guest)) {
            guests.push(guest);
        }
    }

    pub(crate) fn guests(&self) -> Vec<Arc<dyn Guest>> {
        let guests = self.guests.lock();
        guests.iter().filter_map(Weak::upgrade).collect()
    }

    /// Closes the party: its nodes are not used any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Counts an acquisition that begins to send requests to its nodes.
    pub(crate) fn begin_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::SeqCst);
    }

    /// Subtracts an acquisition that has ended and left its orphans to the keeper of the client that drives it.
    pub(crate) fn end_attempt(&self) {
        self.attempts.fetch_sub(1, Ordering::SeqCst);
        // `SeqCst` on both sides: A closes and then reads the count; B, here, lowers the count and then reads whether
        // the party is closed. In one total order at least one of them sees the other's write. With weaker orderings
        // both could miss it, and A would wait for ever.
        if self.is_closed() {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Whether an acquisition is in progress; if so, the task of `waker` is woken when one ends.
    pub(crate) fn has_attempts(&self, waker: &Waker) -> bool {
        {
            let mut waiting = self.waiting.lock();
            if !waiting.iter().any(|known| known.will_wake(waker)) {
                waiting.push(waker.clone());
            }
        }
        0 < self.attempts.load(Ordering::SeqCst)
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
                seen: SeenTokens::default(),
                is_closed: AtomicBool::new(false),
                guests: Mutex::default(),
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
