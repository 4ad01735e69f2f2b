//! Waiters of one process for one lock: one of them talks to the nodes on behalf of all.

mod line;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Wake};

use quorlock_core::lease::Lease;
use quorlock_core::time::Time;

pub(crate) use self::line::Waiter;
use self::line::{Line, WaiterStatus};
use crate::error::AcquireError;
use crate::mutex::Mutex;
use crate::operation::attempt::Attempt;
use crate::shared::keeper::Keeper;
use crate::shared::waiters::{LeaderDue, Led, Relief, Waiters};

/// What waiters must have in common to share a leader: the lock, the lease, whether it is watched, and that they share.
pub(crate) type Key = (Arc<str>, Lease, bool, Sharing);

/// Who has one leader.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Sharing {
    /// All who want the same.
    All,
    /// One reader, which asks by itself as readers need no turn. None waits behind it, and what it was granted can be taken
    /// from it when it is not polled.
    Entering(u64),
    /// One waiter that has a place of its own with the nodes.
    Alone(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<BTreeMap<Key, Arc<Queue>>>);

/// The queue for one lock, and the attempt that is made on behalf of all who stand in it.
///
/// The attempt is the queue's, and the leader has it in its hands only while it polls it: what the leader's task does
/// between two polls keeps no other waiter from it. A leader that does not come when it is woken is passed over.
#[derive(Debug)]
pub(crate) struct Queue {
    key: Key,
    /// It hears of a queue whose leader was woken on behalf of others, and looks after a while whether that one came.
    keeper: Arc<Keeper>,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    line: Line,
    attempt: Shelf,
    /// As the attempt says: when the first round began that failed since a quorum last answered.
    failing_since: Option<Time>,
    /// How often a leader had its turn.
    turns: u64,
    /// Whether the leader was woken and has not had its turn since.
    is_leader_due: bool,
    is_watched: bool,
    /// Whether another lease or mode, or a try, of this client was refused the lock.
    is_in_the_way: bool,
}

impl QueueState {
    /// Whether others depend on the leader's coming when it is woken.
    fn has_others(&self) -> bool {
        self.is_in_the_way || !self.line.rest.is_empty()
    }
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

/// What a waiter is to do.
pub(crate) enum QueueStep {
    /// Poll the attempt, or begin one, and put it back.
    Lead(Option<Box<Attempt>>, Company),
    /// Wait. Rounds fail since this time, if they do.
    Follow(Option<Time>),
    /// Ask by itself: no other waiter is in the way any more.
    Enter,
    /// Join anew, at the end: others have gone on.
    Rejoin,
    /// The leader has failed on behalf of all.
    Fail(AcquireError),
}

/// Whether others depend on a leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Alone,
    /// The attempt wakes the queue, which wakes the leader.
    Followed,
}

impl Queue {
    /// What the waiter is to do now. Its task is woken when that may have changed.
    pub(crate) fn turn(&self, waiter: &Arc<Waiter>, cx: &Context<'_>) -> QueueStep {
        match waiter.register(cx) {
            WaiterStatus::InLine => {}
            WaiterStatus::LetIn => return QueueStep::Enter,
            WaiterStatus::PassedOver => return QueueStep::Rejoin,
            WaiterStatus::Failed(error) => return QueueStep::Fail(error),
        }
        let mut state = self.state.lock();
        if !state.line.is_first(waiter) {
            return QueueStep::Follow(state.failing_since);
        }
        let company = match state.has_others() {
            true => Company::Followed,
            false => Company::Alone,
        };
        state.turns += 1;
        state.is_leader_due = false;
        match std::mem::replace(&mut state.attempt, Shelf::Taken) {
            Shelf::Here(attempt) => QueueStep::Lead(Some(attempt), company),
            Shelf::Empty => QueueStep::Lead(None, company),
            Shelf::Taken => {
                drop(state);
                // A follower whose time is over looks at it: the leader has its turn when that is done.
                QueueStep::Follow(None)
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

    /// Wakes the leader. Where others depend on it, the keeper is told.
    ///
    /// A leads, B waits behind it, and the holder releases: A's task is woken, and does something else with its thread, or
    /// polls another branch of its `select!`. B's own task may be as idle, so it is the keeper that sees to it.
    fn wake_leader(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let leader = state.line.first.clone();
        state.is_leader_due = leader.is_some();
        let is_news = state.has_others() && !state.is_watched;
        state.is_watched |= is_news;
        drop(state);
        if let Some(leader) = leader {
            leader.wake();
        }
        if is_news {
            self.keeper.watch_queue(self.clone());
        }
    }
}

impl Led for Queue {
    fn due(&self) -> LeaderDue {
        let state = self.state.lock();
        LeaderDue(state.is_leader_due.then_some(state.turns))
    }

    fn relieve(&self, before: LeaderDue) -> Relief {
        let mut state = self.state.lock();
        if !state.is_leader_due || !state.has_others() {
            state.is_watched = false;
            return Relief::Over;
        }
        let due = LeaderDue(Some(state.turns));
        if due != before || matches!(state.attempt, Shelf::Taken) {
            return Relief::On(due);
        }
        if state.line.rest.is_empty() {
            // None can take over what was granted to it: that is given back, and the leader begins anew when it comes.
            state.is_watched = false;
            let attempt = std::mem::take(&mut state.attempt);
            drop(state);
            drop(attempt);
            return Relief::Over;
        }
        let absent = state.line.first.take();
        if let Some(absent) = &absent {
            absent.set_aside(WaiterStatus::PassedOver);
        }
        state.line.first = state.line.rest.pop_front();
        let next = state.line.first.clone();
        drop(state);
        // The absent one may just come: it has found itself in line, and then finds another in front. Were it not woken
        // once more, it would wait as a follower of a queue in which it does not stand.
        for waiter in absent.into_iter().chain(next) {
            waiter.wake();
        }
        Relief::On(due)
    }
}

/// What the attempt waits for has come.
impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.wake_leader();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_leader();
    }
}

impl Queues {
    /// Joins the queue of a lock at its end.
    pub(crate) fn join(&self, key: Key, keeper: &Arc<Keeper>) -> (Arc<Queue>, Arc<Waiter>) {
        let waiter = Arc::new(Waiter::default());
        let mut queues = self.0.lock();
        let queue = queues.entry(key).or_insert_with_key(|key| {
            Arc::new(Queue {
                key: key.clone(),
                keeper: keeper.clone(),
                state: Mutex::default(),
            })
        });
        let queue = queue.clone();
        let is_second = {
            let mut state = queue.state.lock();
            state.line.push(waiter.clone());
            state.line.rest.len() == 1
        };
        drop(queues);
        if is_second {
            // The leader is alone no more: from now on the attempt is to wake the queue.
            queue.wake_leader();
        }
        (queue, waiter)
    }

    /// Leaves the queue. The attempt, with whatever is in flight, stays for the next one, who goes on at once; without a
    /// next one it comes back.
    ///
    /// `attempt` is what the waiter has in its hands, which is mostly a leader's.
    pub(crate) fn leave(
        &self,
        queue: &Arc<Queue>,
        waiter: &Arc<Waiter>,
        attempt: Option<Box<Attempt>>,
    ) -> Option<Box<Attempt>> {
        let mut queues = self.0.lock();
        let mut state = queue.state.lock();
        let mut is_next_due = state.line.is_first(waiter);
        state.line.remove(waiter);
        if let Some(attempt) = attempt {
            is_next_due = true;
            state.failing_since = attempt.failing_since();
            state.attempt = Shelf::Here(attempt);
        }
        if state.line.first.is_some() {
            drop(state);
            drop(queues);
            if is_next_due {
                queue.wake_leader();
            }
            return None;
        }
        let left = std::mem::take(&mut state.attempt);
        drop(state);
        forget(&mut queues, queue);
        match left {
            Shelf::Here(attempt) => Some(attempt),
            Shelf::Empty | Shelf::Taken => None,
        }
    }

    /// The leader has failed in a way that its followers would repeat: they fail with it.
    pub(crate) fn fail(&self, queue: &Arc<Queue>, leader: &Arc<Waiter>, error: &AcquireError) {
        self.dismiss(queue, leader, || WaiterStatus::Failed(error.clone()));
    }

    /// The leader of those who share a lock has it: they ask by themselves, all at once.
    pub(crate) fn open(&self, queue: &Arc<Queue>, leader: &Arc<Waiter>) {
        self.dismiss(queue, leader, || WaiterStatus::LetIn);
    }

    /// Sends everybody away who stands behind the leader.
    fn dismiss(
        &self,
        queue: &Arc<Queue>,
        leader: &Arc<Waiter>,
        standing: impl Fn() -> WaiterStatus,
    ) {
        let line = {
            let mut queues = self.0.lock();
            let mut state = queue.state.lock();
            if !state.line.is_first(leader) {
                return;
            }
            forget(&mut queues, queue);
            std::mem::take(&mut state.line)
        };
        for waiter in line.all().filter(|waiter| !Arc::ptr_eq(waiter, leader)) {
            waiter.dismiss(standing());
        }
    }

    /// Whether another waits for the lock of this key or has asked for it by itself and has no answer yet.
    ///
    /// Of 200 readers that come at once, and find a writer, one is refused by itself and one on behalf of the rest. Where
    /// there is none, the rest come in one round trip later, all together.
    pub(crate) fn has_asked(&self, (layout, lease, is_watched, _): Key) -> bool {
        let last = (
            layout.clone(),
            lease,
            is_watched,
            Sharing::Entering(u64::MAX),
        );
        let first = (layout, lease, is_watched, Sharing::All);
        self.0.lock().range(first..=last).next().is_some()
    }
}

impl Waiters for Queues {
    fn close(&self) {
        let queues: Vec<_> = self.0.lock().values().cloned().collect();
        for queue in queues {
            let (waiters, attempt) = {
                let mut state = queue.state.lock();
                let waiters: Vec<_> = state.line.all().cloned().collect();
                let attempt = match &state.attempt {
                    Shelf::Here(attempt) if attempt.is_closed() => {
                        std::mem::take(&mut state.attempt)
                    }
                    Shelf::Here(_) | Shelf::Empty | Shelf::Taken => Shelf::Empty,
                };
                (waiters, attempt)
            };
            drop(attempt);
            waiters.iter().for_each(|waiter| waiter.wake());
        }
    }

    fn in_the_way(&self, layout: &str) {
        let Ok(shortest) = Lease::new(Lease::SHORTEST) else {
            return;
        };
        let queues: Vec<_> = {
            let queues = self.0.lock();
            if queues.is_empty() {
                return;
            }
            let all = queues.range((layout.into(), shortest, false, Sharing::All)..);
            let same = all.take_while(|((key, ..), _)| **key == *layout);
            // Of those with places of their own one waits for the next, whose turn the nodes decide.
            let shared = same.filter(|((.., sharing), _)| !matches!(sharing, Sharing::Alone(_)));
            shared.map(|(_, queue)| queue.clone()).collect()
        };
        for queue in queues {
            let is_news = {
                let mut state = queue.state.lock();
                // One that is polled just now needs no telling, and may be the one that asks.
                let is_here = matches!(state.attempt, Shelf::Here(_));
                let is_news = is_here && !state.is_in_the_way;
                state.is_in_the_way |= is_here;
                is_news
            };
            if is_news {
                queue.wake_leader();
            }
        }
    }
}

/// Takes the queue off the list. Another of the same key may stand there by now.
fn forget(queues: &mut BTreeMap<Key, Arc<Queue>>, queue: &Arc<Queue>) {
    if queues
        .get(&queue.key)
        .is_some_and(|l| Arc::ptr_eq(l, queue))
    {
        queues.remove(&queue.key);
    }
}

#[cfg(all(test, shuttle))]
mod threads;
