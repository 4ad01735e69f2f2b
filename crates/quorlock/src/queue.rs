//! Waiters of one process for one lock: one of them talks to the nodes on behalf of all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use quorlock_core::lease::Lease;
use quorlock_core::time::Time;

use crate::attempt::Attempt;
use crate::error::AcquireError;
use crate::mutex::Mutex;

/// What waiters must have in common to share a leader: the lock, the lease, and whether it is watched. The number is 0,
/// or different for each waiter that talks to the nodes itself.
pub(crate) type Key = (Arc<str>, Lease, bool, u64);

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<BTreeMap<Key, Arc<Lane>>>);

/// The queue for one lock, and the attempt that is made on behalf of all who stand in it.
///
/// The attempt is the lane's, and the leader has it in its hands only while it polls it: what the leader's task does
/// between two polls keeps nobody else from it.
#[derive(Debug)]
pub(crate) struct Lane {
    key: Key,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    line: Line,
    attempt: Shelf,
    /// As the attempt says: when the first round began that failed since a quorum last answered.
    failing_since: Option<Time>,
}

/// Where the attempt is.
#[derive(Debug, Default)]
enum Shelf {
    /// There is none: the leader begins one.
    #[default]
    Empty,
    Here(Box<Attempt>),
    /// A waiter polls it just now.
    Taken,
}

/// The first is the leader. (A waiter mostly stands alone, and needs no list then.)
#[derive(Debug, Default)]
struct Line {
    first: Option<Arc<Waiter>>,
    rest: VecDeque<Arc<Waiter>>,
}

/// One place in a queue.
#[derive(Debug, Default)]
pub(crate) struct Waiter(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    waker: Option<Waker>,
    failure: Option<AcquireError>,
}

/// What a waiter is to do.
pub(crate) enum Turn {
    /// Poll the attempt, or begin one, and put it back.
    Lead(Option<Box<Attempt>>, Company),
    /// Wait. Rounds fail since this time, if they do.
    Follow(Option<Time>),
    /// The leader has failed on behalf of all.
    Fail(AcquireError),
}

/// Whether others stand behind a leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Alone,
    /// The attempt wakes the lane, which wakes the leader.
    Followed,
}

impl Line {
    fn is_first(&self, waiter: &Arc<Waiter>) -> bool {
        self.first.as_ref().is_some_and(|f| Arc::ptr_eq(f, waiter))
    }

    fn push(&mut self, waiter: Arc<Waiter>) {
        match &self.first {
            None => self.first = Some(waiter),
            Some(_) => self.rest.push_back(waiter),
        }
    }

    fn remove(&mut self, waiter: &Arc<Waiter>) {
        if self.is_first(waiter) {
            self.first = self.rest.pop_front();
        } else {
            self.rest.retain(|other| !Arc::ptr_eq(other, waiter));
        }
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Waiter>> {
        self.first.iter().chain(&self.rest)
    }
}

impl Waiter {
    /// The task is woken when the waiter may have become the leader, or the client was closed. If the leader has
    /// failed on behalf of all: how.
    fn register(&self, cx: &Context<'_>) -> Option<AcquireError> {
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

impl Lane {
    /// What the waiter is to do now. Its task is woken when that may have changed.
    pub(crate) fn turn(&self, waiter: &Arc<Waiter>, cx: &Context<'_>) -> Turn {
        if let Some(error) = waiter.register(cx) {
            return Turn::Fail(error);
        }
        let mut state = self.state.lock();
        if !state.line.is_first(waiter) {
            return Turn::Follow(state.failing_since);
        }
        let company = match state.line.rest.is_empty() {
            true => Company::Alone,
            false => Company::Followed,
        };
        match std::mem::replace(&mut state.attempt, Shelf::Taken) {
            Shelf::Here(attempt) => Turn::Lead(Some(attempt), company),
            Shelf::Empty => Turn::Lead(None, company),
            Shelf::Taken => {
                drop(state);
                // A follower whose time is over looks at it: the leader has its turn when that is done.
                Turn::Follow(None)
            }
        }
    }

    /// Puts the attempt back that the leader has polled and that has not ended.
    pub(crate) fn put_back(&self, attempt: Box<Attempt>) {
        let failing_since = attempt.failing_since();
        let mut state = self.state.lock();
        state.attempt = Shelf::Here(attempt);
        if state.failing_since == failing_since {
            return;
        }
        // The time of those who wait without a bound begins to run, or runs no more.
        state.failing_since = failing_since;
        let rest = state.line.rest.clone();
        drop(state);
        rest.iter().for_each(|waiter| waiter.wake());
    }

    /// The attempt, for a waiter whose time is over, unless it is polled just now.
    pub(crate) fn borrow(&self) -> Option<Box<Attempt>> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.attempt, Shelf::Taken) {
            Shelf::Here(attempt) => Some(attempt),
            Shelf::Empty => {
                state.attempt = Shelf::Empty;
                None
            }
            Shelf::Taken => None,
        }
    }

    fn wake_leader(&self) {
        let leader = self.state.lock().line.first.clone();
        if let Some(leader) = leader {
            leader.wake();
        }
    }
}

/// What the attempt waits for has come.
impl Wake for Lane {
    fn wake(self: Arc<Self>) {
        self.wake_leader();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_leader();
    }
}

impl Queues {
    /// Joins the queue of a lock at its end.
    pub(crate) fn join(&self, key: Key) -> (Arc<Lane>, Arc<Waiter>) {
        let waiter = Arc::new(Waiter::default());
        let mut lanes = self.0.lock();
        let lane = lanes.entry(key).or_insert_with_key(|key| {
            Arc::new(Lane {
                key: key.clone(),
                state: Mutex::default(),
            })
        });
        let lane = lane.clone();
        let leader = {
            let mut state = lane.state.lock();
            state.line.push(waiter.clone());
            // The leader is alone no more: from now on the attempt is to wake the lane.
            let is_second = state.line.rest.len() == 1;
            state.line.first.clone().filter(|_| is_second)
        };
        drop(lanes);
        if let Some(leader) = leader {
            leader.wake();
        }
        (lane, waiter)
    }

    /// Leaves the queue. The attempt, with whatever is in flight, stays for the next one, who goes on at once; without a
    /// next one it comes back.
    ///
    /// `attempt` is what the waiter has in its hands, which is mostly a leader's.
    pub(crate) fn leave(
        &self,
        lane: &Arc<Lane>,
        waiter: &Arc<Waiter>,
        attempt: Option<Box<Attempt>>,
    ) -> Option<Box<Attempt>> {
        let mut lanes = self.0.lock();
        let mut state = lane.state.lock();
        let mut is_next_due = state.line.is_first(waiter);
        state.line.remove(waiter);
        if let Some(attempt) = attempt {
            is_next_due = true;
            state.failing_since = attempt.failing_since();
            state.attempt = Shelf::Here(attempt);
        }
        if let Some(next) = state.line.first.clone() {
            drop(state);
            drop(lanes);
            if is_next_due {
                next.wake();
            }
            return None;
        }
        let left = std::mem::take(&mut state.attempt);
        drop(state);
        forget(&mut lanes, lane);
        match left {
            Shelf::Here(attempt) => Some(attempt),
            Shelf::Empty | Shelf::Taken => None,
        }
    }

    /// The leader has failed in a way that its followers would repeat: they fail with it.
    pub(crate) fn fail(&self, lane: &Arc<Lane>, leader: &Arc<Waiter>, error: &AcquireError) {
        let line = {
            let mut lanes = self.0.lock();
            let mut state = lane.state.lock();
            if !state.line.is_first(leader) {
                return;
            }
            forget(&mut lanes, lane);
            std::mem::take(&mut state.line)
        };
        for waiter in line.all().filter(|waiter| !Arc::ptr_eq(waiter, leader)) {
            waiter.fail(error);
        }
    }

    /// Wakes every waiter, to see that the client was closed.
    pub(crate) fn wake_all(&self) {
        let lanes: Vec<_> = self.0.lock().values().cloned().collect();
        for lane in lanes {
            let waiters: Vec<_> = lane.state.lock().line.all().cloned().collect();
            waiters.iter().for_each(|waiter| waiter.wake());
        }
    }
}

/// Takes the lane off the list. Another of the same key may stand there by now.
fn forget(lanes: &mut BTreeMap<Key, Arc<Lane>>, lane: &Arc<Lane>) {
    if lanes.get(&lane.key).is_some_and(|l| Arc::ptr_eq(l, lane)) {
        lanes.remove(&lane.key);
    }
}
