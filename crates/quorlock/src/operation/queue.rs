//! The waiters of one process for one lock, one of which sends requests on behalf of all.

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
use crate::shared::hold::Hold;
use crate::shared::keeper::Keeper;
use crate::shared::waiters::{DueTurn, FirstInLine, Relief, Waiters};

/// What waiters must have in common to share a first waiter: the lock, the lease, whether the lease is renewed, and their
/// [`Sharing`].
pub(crate) type Key = (Arc<str>, Lease, bool, Sharing);

/// Which waiters share a first waiter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Sharing {
    /// All waiters for the same lock and lease.
    All,
    /// A single reader, because readers need no turn. No waiter is behind it; its grants are released if it is not
    /// polled.
    Entering(u64),
    /// A single waiter that has its own place in the nodes' queues.
    Alone(u64),
    /// All candidates for the leadership of a name. Nothing passes from one to another: observers tell terms apart by their owners,
    /// and read the token that the nodes store.
    Electing,
}

#[derive(Debug, Default)]
pub(crate) struct Queues(Mutex<BTreeMap<Key, Arc<Queue>>>);

/// The queue for one lock, and the attempt that is made on behalf of all its waiters.
///
/// The attempt belongs to the queue, and the first waiter holds it only during a poll. Other waiters can therefore take
/// the attempt over, whatever the first waiter's task does between two polls. A first waiter that is woken and not polled is
/// passed over.
#[derive(Debug)]
pub(crate) struct Queue {
    key: Key,
    /// The keeper, which watches the queue when its first waiter was woken on behalf of others, and passes over a first waiter
    /// that is not polled.
    keeper: Arc<Keeper>,
    state: Mutex<QueueState>,
}

#[derive(Debug, Default)]
struct QueueState {
    line: Line,
    attempt: Shelf,
    /// When the first failed round since the last answer of a quorum began, copied from the attempt.
    failing_since: Option<Time>,
    /// The number of turns that first waiters have had.
    turns: u64,
    /// Whether the first waiter was woken and has not had its turn since.
    is_first_due: bool,
    is_watched: bool,
    /// Whether this queue may have caused a refusal to this client, for another lease or mode or for a try.
    is_in_the_way: bool,
}

impl QueueState {
    /// Whether others are blocked while the first waiter is woken and not polled.
    fn has_others(&self) -> bool {
        self.is_in_the_way || !self.line.rest.is_empty()
    }
}

/// Where the attempt is.
#[derive(Debug, Default)]
enum Shelf {
    /// There is none. The first waiter begins one.
    #[default]
    Empty,
    Here(Box<Attempt>),
    /// A waiter is polling it right now.
    Taken,
}

/// What a waiter does next.
pub(crate) enum QueueStep {
    /// The waiter polls the attempt, or begins one, and puts it back.
    Lead(Option<Box<Attempt>>, Company),
    /// The waiter waits. If rounds are failing, the value is the time since when.
    Follow(Option<Time>),
    /// The waiter tries alone: no other waiter is in the way any more.
    Enter,
    /// The waiter takes this hold, which another caller has passed on.
    Take(Arc<Hold>),
    /// The waiter joins again at the end of the queue, because it was passed over.
    Rejoin,
    /// The waiter fails with the first waiter's error, which applies to all.
    Fail(AcquireError),
}

/// Whether other waiters depend on a first waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    Alone,
    /// They do: the attempt wakes the queue, which wakes the first waiter and watches it.
    Followed,
}

impl Queue {
    /// Returns what the waiter does now. Its task is woken when that may have changed.
    pub(crate) fn turn(&self, waiter: &Arc<Waiter>, cx: &Context<'_>) -> QueueStep {
        match waiter.register(cx) {
            WaiterStatus::InLine => {}
            WaiterStatus::LetIn => return QueueStep::Enter,
            WaiterStatus::Given(hold) => return QueueStep::Take(hold),
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
        state.is_first_due = false;
        match std::mem::replace(&mut state.attempt, Shelf::Taken) {
            Shelf::Here(attempt) => QueueStep::Lead(Some(attempt), company),
            Shelf::Empty => QueueStep::Lead(None, company),
            Shelf::Taken => {
                drop(state);
                // A follower whose wait is over is looking at the attempt, and wakes the first waiter when it is done.
                QueueStep::Follow(None)
            }
        }
    }

    /// Puts back the attempt after a poll that did not end it.
    pub(crate) fn put_back(self: &Arc<Self>, attempt: Box<Attempt>, waiter: &Arc<Waiter>) {
        let failing_since = attempt.failing_since();
        let mut state = self.state.lock();
        state.attempt = Shelf::Here(attempt);
        if !state.line.is_first(waiter) {
            // The waiter was given a hold during the poll. The attempt wakes its task, and the next waiter has found no attempt.
            drop(state);
            self.wake_first();
            state = self.state.lock();
        }
        if state.failing_since == failing_since {
            return;
        }
        // Wake the followers: the limit for waits without a bound starts to run when rounds begin to fail, and
        // stops when a quorum answers.
        state.failing_since = failing_since;
        let rest = state.line.rest.clone();
        drop(state);
        rest.iter().for_each(|waiter| waiter.wake());
    }

    /// Takes the attempt for a waiter whose wait is over; `None` if another waiter is polling it or there is none.
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

    /// Wakes the first waiter, and tells the keeper if others depend on it.
    ///
    /// A leads, B waits behind it, and the holder releases. A's task is woken, but blocks its thread or polls another
    /// branch of its `select!`. B's task is not woken at all, so only the keeper can notice that A is not polled.
    fn wake_first(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let first = state.line.first.clone();
        state.is_first_due = first.is_some();
        let is_news = state.has_others() && !state.is_watched;
        state.is_watched |= is_news;
        drop(state);
        if let Some(first) = first {
            first.wake();
        }
        if is_news {
            self.keeper.watch_queue(self.clone());
        }
    }
}

impl Queue {
    /// Gives a hold to the first waiter, which leaves the line. Returns whether there was one.
    fn give(self: &Arc<Self>, hold: &Arc<Hold>) -> bool {
        let mut state = self.state.lock();
        let Some(first) = state.line.first.take() else {
            return false;
        };
        first.set_aside(WaiterStatus::Given(hold.clone()));
        state.line.first = state.line.rest.pop_front();
        let has_next = state.line.first.is_some();
        state.is_first_due = false;
        // No waiter is left that could take over what the attempt was granted. Drop it without the mutex, as when a waiter is
        // relieved.
        let left = match (&state.attempt, has_next) {
            (Shelf::Here(_), false) => std::mem::take(&mut state.attempt),
            _ => Shelf::Empty,
        };
        drop(state);
        drop(left);
        first.wake();
        if has_next {
            // The attempt may wake the task of the waiter that has left.
            self.wake_first();
        }
        true
    }
}

impl FirstInLine for Queue {
    fn due(&self) -> DueTurn {
        let state = self.state.lock();
        DueTurn(state.is_first_due.then_some(state.turns))
    }

    fn relieve(&self, before: DueTurn) -> Relief {
        let mut state = self.state.lock();
        if !state.is_first_due || !state.has_others() {
            state.is_watched = false;
            return Relief::Over;
        }
        let due = DueTurn(Some(state.turns));
        if due != before || matches!(state.attempt, Shelf::Taken) {
            return Relief::On(due);
        }
        if state.line.rest.is_empty() {
            // No other waiter can take over its grants, so they are released; the first waiter begins again when it is
            // polled. Drop the attempt without the mutex: it drops calls of the transport, which may wake this queue,
            // and that locks it.
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
        // The passed-over first waiter may be in a poll right now: it found itself in line, and has not yet found another
        // in front. Without another wake-up it would wait as a follower of a queue that it has left.
        for waiter in absent.into_iter().chain(next) {
            waiter.wake();
        }
        Relief::On(due)
    }
}

/// Wakes the attempt through its first waiter.
impl Wake for Queue {
    fn wake(self: Arc<Self>) {
        self.wake_first();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_first();
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
            // The first waiter was alone, so the attempt wakes its task directly. Its next poll makes the attempt wake the
            // queue.
            queue.wake_first();
        }
        (queue, waiter)
    }

    /// Leaves the queue. The attempt, with its requests in flight, passes to the next waiter, which is woken. Without
    /// a next waiter it is returned; the caller drops it after both mutexes are released, because its drop runs code
    /// of transports.
    ///
    /// `attempt` is what the waiter holds itself, which is usually a first waiter's.
    pub(crate) fn leave(
        &self,
        queue: &Arc<Queue>,
        waiter: &Arc<Waiter>,
        attempt: Option<Box<Attempt>>,
    ) -> Option<Box<Attempt>> {
        let mut queues = self.0.lock();
        let mut state = queue.state.lock();
        let mut is_next_due = state.line.remove(waiter);
        if let Some(attempt) = attempt {
            is_next_due = true;
            state.failing_since = attempt.failing_since();
            state.attempt = Shelf::Here(attempt);
        }
        if state.line.first.is_some() {
            drop(state);
            drop(queues);
            if is_next_due {
                queue.wake_first();
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

    /// Fails the followers together with the first waiter, because each of them would get the same error.
    pub(crate) fn fail(&self, queue: &Arc<Queue>, first: &Arc<Waiter>, error: &AcquireError) {
        self.dismiss(queue, first, || WaiterStatus::Failed(error.clone()));
    }

    /// Lets in the waiters that share the lock with the first waiter: each of them tries alone, all at once.
    pub(crate) fn open(&self, queue: &Arc<Queue>, first: &Arc<Waiter>) {
        self.dismiss(queue, first, || WaiterStatus::LetIn);
    }

    /// Removes all waiters behind the first waiter from the queue.
    fn dismiss(
        &self,
        queue: &Arc<Queue>,
        first: &Arc<Waiter>,
        standing: impl Fn() -> WaiterStatus,
    ) {
        let line = {
            let mut queues = self.0.lock();
            let mut state = queue.state.lock();
            if !state.line.is_first(first) {
                return;
            }
            forget(&mut queues, queue);
            std::mem::take(&mut state.line)
        };
        for waiter in line.all().filter(|waiter| !Arc::ptr_eq(waiter, first)) {
            waiter.dismiss(standing());
        }
    }

    /// Whether another waiter is in line for the lock of this key, or has tried alone and has no answer yet.
    ///
    /// If 200 readers come at once and find a writer, one of them is refused alone and another one on behalf of
    /// the rest. Without a writer the others enter together, one round trip after the first.
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

impl Queues {
    /// The queue of those who share the lock and the lease of a hold.
    fn of(&self, hold: &Hold) -> Option<Arc<Queue>> {
        if self.0.lock().is_empty() {
            return None;
        }
        let (lease, is_watched) = hold.leased();
        let key = (hold.layout.key.clone(), lease, is_watched, Sharing::All);
        self.0.lock().get(&key).cloned()
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
            // Without the mutex: the drop releases grants and drops calls, which may wake this queue, and that locks
            // it.
            drop(attempt);
            waiters.iter().for_each(|waiter| waiter.wake());
        }
    }

    fn awaits(&self, hold: &Hold) -> bool {
        self.of(hold)
            .is_some_and(|queue| queue.state.lock().line.first.is_some())
    }

    fn give(&self, hold: &Arc<Hold>) -> bool {
        self.of(hold).is_some_and(|queue| queue.give(hold))
    }

    fn in_the_way(&self, layout: &Arc<str>) {
        let Ok(shortest) = Lease::new(Lease::SHORTEST) else {
            return;
        };
        let queues: Vec<_> = {
            let queues = self.0.lock();
            if queues.is_empty() {
                return;
            }
            let all = queues.range((layout.clone(), shortest, false, Sharing::All)..);
            let same = all.take_while(|((key, ..), _)| key == layout);
            // In a queue with a single waiter the nodes decide the turn, so no first waiter can be in the way.
            let shared = same.filter(|((.., sharing), _)| !matches!(sharing, Sharing::Alone(_)));
            shared.map(|(_, queue)| queue.clone()).collect()
        };
        for queue in queues {
            let is_news = {
                let mut state = queue.state.lock();
                // A first waiter that is being polled needs no watching, and may be the one that was refused.
                let is_here = matches!(state.attempt, Shelf::Here(_));
                let is_news = is_here && !state.is_in_the_way;
                state.is_in_the_way |= is_here;
                is_news
            };
            if is_news {
                queue.wake_first();
            }
        }
    }

    fn wait_for_others(&self, layout: &str) -> bool {
        let queues = self.0.lock();
        queues.keys().any(|(key, ..)| **key != *layout)
    }
}

/// Removes the queue from the list, unless another queue has the key by now.
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
