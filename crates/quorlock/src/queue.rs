//! Waiters of one process for one lock: one of them talks to the nodes on behalf of all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Waker};

use quorlock_core::lease::Lease;

use crate::attempt::Attempt;
use crate::error::AcquireError;
use crate::mutex::Mutex;

/// What waiters must have in common to share a leader: the lock, the lease, and whether it is watched. The number is 0,
/// or different for each waiter that talks to the nodes itself.
pub(crate) type Key = (Arc<str>, Lease, bool, u64);

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<BTreeMap<Key, Queue>>);

/// The first is the leader.
#[derive(Debug, Default)]
struct Queue {
    waiters: VecDeque<Arc<Waiter>>,
    /// What the leader before left to the next one.
    parked: Option<Box<Attempt>>,
}

/// One place in a queue.
#[derive(Debug, Default)]
pub(crate) struct Waiter(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    waker: Option<Waker>,
    failure: Option<AcquireError>,
}

impl Waiter {
    /// The task is woken when the waiter may have become the leader, or the client was closed. If the leader has
    /// failed on behalf of all: how.
    pub(crate) fn register(&self, cx: &Context<'_>) -> Option<AcquireError> {
        let mut waiting = self.0.lock();
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        waiting.failure.take()
    }

    fn fail(&self, error: &AcquireError) {
        self.0.lock().failure = Some(error.clone());
        self.wake();
    }

    fn wake(&self) {
        let waker = self.0.lock().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Queues {
    /// Joins the queue of a lock at its end.
    pub(crate) fn join(&self, key: &Key) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter::default());
        let mut queues = self.0.lock();
        let queue = queues.entry(key.clone()).or_default();
        queue.waiters.push_back(waiter.clone());
        waiter
    }

    /// Whether the waiter is the leader now; if so, with what the one before left.
    pub(crate) fn lead(&self, key: &Key, waiter: &Arc<Waiter>) -> Option<Option<Box<Attempt>>> {
        let mut queues = self.0.lock();
        let queue = queues.get_mut(key)?;
        let is_first = queue
            .waiters
            .front()
            .is_some_and(|first| Arc::ptr_eq(first, waiter));
        is_first.then(|| queue.parked.take())
    }

    /// Leaves the queue. A leader hands its attempt, with whatever is in flight, to the next one, who goes on at
    /// once; without a next one the attempt comes back.
    pub(crate) fn leave(
        &self,
        key: &Key,
        waiter: &Arc<Waiter>,
        attempt: Option<Box<Attempt>>,
    ) -> Option<Box<Attempt>> {
        let mut queues = self.0.lock();
        let Some(queue) = queues.get_mut(key) else {
            return attempt;
        };
        let was_first = queue
            .waiters
            .front()
            .is_some_and(|first| Arc::ptr_eq(first, waiter));
        queue.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
        if !was_first {
            return attempt;
        }
        let attempt = attempt.or_else(|| queue.parked.take());
        let next = queue.waiters.front().cloned();
        match next {
            Some(next) => {
                queue.parked = attempt;
                drop(queues);
                next.wake();
                None
            }
            None => {
                queues.remove(key);
                attempt
            }
        }
    }

    /// The leader has failed in a way that its followers would repeat, each for as long: they fail with it.
    pub(crate) fn fail(&self, key: &Key, leader: &Arc<Waiter>, error: &AcquireError) {
        let queue = {
            let mut queues = self.0.lock();
            let is_leader = queues
                .get(key)
                .and_then(|queue| queue.waiters.front())
                .is_some_and(|first| Arc::ptr_eq(first, leader));
            if is_leader { queues.remove(key) } else { None }
        };
        for waiter in queue.into_iter().flat_map(|queue| queue.waiters) {
            if !Arc::ptr_eq(&waiter, leader) {
                waiter.fail(error);
            }
        }
    }

    /// Wakes every waiter, to see that the client was closed.
    pub(crate) fn wake_all(&self) {
        let waiters: Vec<_> = {
            let queues = self.0.lock();
            let waiters = queues.values().flat_map(|queue| queue.waiters.iter());
            waiters.cloned().collect()
        };
        for waiter in waiters {
            waiter.wake();
        }
    }
}
