//! The keeper: one task per client that renews holds, reads late answers and cleans up.
//!
//! It polls all of its calls concurrently. It takes over whatever a dropped future leaves behind, so dropping any
//! future of this crate at any await leaves at most one clean-up, in which each release names its owner.

mod batches;
mod claim_watch;
mod clean_up;
mod inner;
pub(crate) mod late;
mod lowering;
mod phase;
mod queues;
mod task;
mod under_way;
mod windows;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use quorlock_core::quorum::MemberId;
use quorlock_core::renewal::Status;
use quorlock_core::time::Time;

pub(crate) use self::clean_up::{CleanUp, LastAcquire};
use self::inner::Inner;
use self::phase::{CurrentPhase, GiveBack, Phase};
use crate::mutex::Mutex;
use crate::runtime::Runtime;
use crate::shared::alarm::Alarm;
use crate::shared::contended::ContendedLocks;
use crate::shared::hold::Hold;
use crate::shared::layout::{Layout, Node};
use crate::shared::waiters::{FirstInLine, Waiters};
use crate::shared::wake_ups::WakeUps;

/// The longest sleep of the keeper while anything is held. Timers do not count the time during which the machine was
/// suspended, but the clock does: this bounds how late a loss is noticed after resuming.
const TICK: Duration = Duration::from_secs(1);

/// How long the keeper waits before it looks at a clean-up whose release was already sent. By then most answers have
/// arrived, and many are read in one poll.
const LATER: Duration = Duration::from_millis(10);

/// The keeper as seen by its task and by the client.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    inner: Mutex<Inner>,
    /// When a node must be probed.
    alarm: Arc<Alarm>,
    contended: ContendedLocks,
    phase: CurrentPhase,
}

/// A message to the keeper.
pub(crate) enum Message {
    /// Claims that may exist for an owner that has given up.
    Orphans(Vec<CleanUp>),
    /// A dropped guard, with the remaining count of its hold.
    Dropped(Arc<Hold>, u32),
    /// The claim of a member may be gone.
    Doubted(Arc<Hold>, MemberId),
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Message::Orphans(_) => "Orphans",
            Message::Dropped(..) => "Dropped",
            Message::Doubted(..) => "Doubted",
        })
    }
}

impl Keeper {
    /// Creates a keeper without starting its task.
    pub(crate) fn new() -> Arc<Self> {
        let keeper = Arc::new(Keeper::default());
        {
            let mut inner = keeper.inner.lock();
            inner.wakes_at = Time::NEVER;
            inner.inbox_due = Time::NEVER;
        }
        keeper
    }

    /// Starts the keeper's task.
    pub(crate) fn start(self: &Arc<Self>, runtime: &Arc<dyn Runtime>, nodes: Arc<[Node]>) {
        let (keeper, runtime) = (self.clone(), runtime.clone());
        let task = task::KeeperTask::new(keeper, runtime.clone(), nodes);
        runtime.spawn(Box::pin(task));
    }

    /// The alarm that is set for the next probe of a node.
    pub(crate) fn alarm(&self) -> &Arc<Alarm> {
        &self.alarm
    }

    /// The record of contended locks, for the next acquisition of each.
    pub(crate) fn contended(&self) -> &ContendedLocks {
        &self.contended
    }

    /// Keeps the subscriptions of an acquisition that has ended for the next one of the same lock.
    pub(crate) fn rest(&self, now: Time, key: &Arc<str>, ears: WakeUps) {
        if self.phase.get() != Phase::Running {
            return;
        }
        let due = self.contended.put(now, key, ears);
        self.with(|inner| due < inner.wakes_at);
    }

    /// Watches a queue whose first waiter was woken on behalf of others. The first waiter is passed over if it is not polled in
    /// time.
    pub(crate) fn watch_queue(&self, queue: Arc<dyn FirstInLine>) {
        let mut dropped = None;
        self.with(|inner| {
            let is_idle = inner.queues.is_empty();
            if self.is_dead() {
                dropped = Some(queue);
                return false;
            }
            inner.queues.push(queue);
            is_idle
            // Drop it without the mutex: the queue owns an attempt, whose drop calls the keeper.
        });
        drop(dropped);
    }

    /// Keeps a hold from now on, and reserves a place for the drop of its first guard. Wakes the keeper only if it
    /// would sleep for too long.
    ///
    /// A dead keeper keeps nothing: the hold is lost at once. This is checked under the mutex. Otherwise A could win
    /// its round and see a live keeper, then the keeper's runtime ends and [`Keeper::die`] empties the list. A's
    /// hold would be added to a list that no task reads, would never be renewed, and A would never be notified.
    pub(crate) fn keep(&self, now: Time, hold: &Arc<Hold>) {
        let mut is_kept = true;
        self.with(|inner| {
            inner.reserve();
            is_kept = !self.is_dead();
            if !is_kept {
                return false;
            }
            let due = inner.schedule(hold);
            if self.phase.get() == Phase::Closing {
                inner.give_back = GiveBack::All;
            } else if hold.layout.is_closed() {
                inner.give_back = inner.give_back.max(GiveBack::OfClosedClients);
            }
            inner.give_back != GiveBack::None || due.min(now + TICK) < inner.wakes_at
        });
        if !is_kept {
            hold.close(now);
        }
    }

    /// Schedules a hold again after a change that may make it due earlier.
    pub(crate) fn reschedule(&self, hold: &Arc<Hold>) {
        self.with(|inner| inner.keeps(hold) && inner.schedule(hold) < inner.wakes_at);
    }

    /// Stops keeping a hold.
    pub(crate) fn forget(&self, hold: &Hold) {
        self.with(|inner| {
            inner.forget(hold);
            false
        });
    }

    /// Reserves a place in the inbox for the drop of one more guard.
    pub(crate) fn reserve(&self) {
        self.with(|inner| {
            inner.reserve();
            false
        });
    }

    /// Frees the place of a guard that ended without being dropped. If it was the last one, its hold is no longer kept.
    pub(crate) fn unreserve(&self, ended: Option<&Hold>) {
        self.with(|inner| {
            inner.guards = inner.guards.saturating_sub(1);
            let Some(hold) = ended else {
                return false;
            };
            inner.forget(hold);
            // It may be the last hold for which a task that closes a client waits.
            !inner.waiting_for_idle.is_empty() || !inner.waiting_for_others.is_empty()
        });
    }

    /// Puts the message of a dropped guard into its place. A hold that was lost before has been cleaned up already.
    pub(crate) fn dropped(&self, hold: &Arc<Hold>, count: u32, status: Status) {
        self.with(|inner| {
            inner.guards = inner.guards.saturating_sub(1);
            let is_news = status == Status::Held;
            if is_news {
                inner.inbox_due = Time::ZERO;
                inner.inbox.push(Message::Dropped(hold.clone(), count));
            }
            is_news
        });
    }

    /// Drops a guard at a later time, in whose place its message has a place until then.
    pub(crate) fn stay(&self, until: Time, hold: &Arc<Hold>) {
        self.with(|inner| {
            if self.is_dead() {
                inner.guards = inner.guards.saturating_sub(1);
                return false;
            }
            inner.stay(until, hold.clone());
            until < inner.wakes_at
        });
    }

    /// Ends the [`stay`](Keeper::stay) of a hold. Returns whether it was still there: the place in the inbox is the caller's then.
    pub(crate) fn end_stay(&self, hold: &Arc<Hold>) -> bool {
        let mut ended = None;
        self.with(|inner| {
            ended = inner.end_stay(hold);
            false
            // Drop it without the mutex: it may be the last reference.
        });
        ended.is_some()
    }

    /// Asks a member about a claim that may be gone.
    fn doubt(&self, hold: Arc<Hold>, member: MemberId) {
        let mut dropped = None;
        self.with(|inner| {
            if self.is_dead() {
                dropped = Some(hold);
                return false;
            }
            inner.inbox_due = Time::ZERO;
            inner.inbox.push(Message::Doubted(hold, member));
            let guards = inner.guards;
            inner.inbox.reserve(guards);
            true
            // Drop it without the mutex: it may be the last reference.
        });
        drop(dropped);
    }

    /// Passes claims to the keeper, which releases those that have not been released yet.
    pub(crate) fn leave(&self, now: Time, mut orphans: Vec<CleanUp>) {
        orphans.retain(|orphan| !orphan.report_if_done(now));
        if orphans.is_empty() {
            return;
        }
        let due = match orphans.iter().all(CleanUp::is_releasing) {
            true => now + LATER,
            false => now,
        };
        self.with(|inner| {
            inner.inbox_due = inner.inbox_due.min(due);
            inner.inbox.push(Message::Orphans(orphans));
            let guards = inner.guards;
            inner.inbox.reserve(guards);
            inner.inbox_due < inner.wakes_at
        });
    }

    /// Whether the keeper's task has ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.phase.get() == Phase::Dead
    }

    /// Ends the keeper with its task. Whatever is still kept is lost now.
    fn die(&self, now: Time) {
        let (holds, queues, waiting, waiters): (Vec<_>, _, _, _) = {
            let mut inner = self.inner.lock();
            self.phase.reach(Phase::Dead);
            inner.is_idle = true;
            inner.due.clear();
            let holds = std::mem::take(&mut inner.holds);
            let holds = holds.into_values().map(|kept| kept.hold).collect();
            let mut waiting = std::mem::take(&mut inner.waiting_for_idle);
            waiting.append(&mut inner.waiting_for_others);
            let queues = std::mem::take(&mut inner.queues);
            (holds, queues, waiting, inner.waiters.clone())
        };
        self.contended.clear();
        for queue in queues {
            let due = queue.due();
            queue.relieve(due);
        }
        for hold in holds {
            hold.close(now);
        }
        // Wake them: A closes the client on another runtime than the keeper's, or B waits there behind a first waiter that
        // is not polled. The task that would wake them has ended, and they would wait for ever.
        waiting.into_iter().for_each(Waker::wake);
        if let Some(waiters) = waiters.and_then(|waiters| waiters.upgrade()) {
            waiters.close();
        }
    }

    /// Sets the waiters to notify when the keeper's task ends early.
    pub(crate) fn tell_of_its_end(&self, waiters: &Arc<dyn Waiters>) {
        self.inner.lock().waiters = Some(Arc::downgrade(waiters));
    }

    /// Releases everything that is held.
    pub(crate) fn close(&self) {
        self.contended.clear();
        self.with(|inner| {
            self.phase.reach(Phase::Closing);
            inner.give_back = GiveBack::All;
            true
        });
    }

    /// Releases the holds that have members of another client, which was closed.
    pub(crate) fn close_others(&self) {
        self.with(|inner| {
            let give_back = match self.phase.get() {
                Phase::Closing => GiveBack::All,
                _ => GiveBack::OfClosedClients,
            };
            inner.give_back = inner.give_back.max(give_back);
            inner.is_closing_others = true;
            true
        });
    }

    /// Whether those holds are released; if not, the task of `waker` is woken when they are.
    pub(crate) fn has_closed_others(&self, waker: &Waker) -> bool {
        let mut inner = self.inner.lock();
        let is_done = self.is_dead() || !inner.is_closing_others;
        if !is_done && !inner.waiting_for_others.iter().any(|w| w.will_wake(waker)) {
            inner.waiting_for_others.push(waker.clone());
        }
        is_done
    }

    /// Lets the task end when nothing is left to do, because the client was dropped.
    pub(crate) fn finish(&self) {
        self.with(|_| {
            self.phase.reach(Phase::Finishing);
            true
        });
    }

    /// Whether nothing is in progress; if something is, the task of `waker` is woken when that changes.
    pub(crate) fn is_idle(&self, waker: &Waker) -> bool {
        let mut inner = self.inner.lock();
        let is_idle =
            self.is_dead() || (inner.is_idle && inner.inbox.is_empty() && inner.holds.is_empty());
        if !is_idle && !inner.waiting_for_idle.iter().any(|w| w.will_wake(waker)) {
            inner.waiting_for_idle.push(waker.clone());
        }
        is_idle
    }

    /// Whether a hold of the client has a name of this lock.
    pub(crate) fn holds_some_of(&self, layout: &Layout) -> bool {
        let inner = self.inner.lock();
        let mut holds = inner.holds.values();
        holds.any(|kept| kept.hold.layout.common_name(layout).is_some())
    }

    /// The keys of the locks that the client holds.
    pub(crate) fn held_keys(&self) -> BTreeSet<Arc<str>> {
        let inner = self.inner.lock();
        let holds = inner.holds.values();
        holds.map(|kept| kept.hold.layout.key.clone()).collect()
    }

    /// The number of holds.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().holds.len()
    }

    /// Changes the shared state. Wakes the task if the change returns true.
    fn with(&self, change: impl FnOnce(&mut Inner) -> bool) {
        let mut inner = self.inner.lock();
        let waker = if change(&mut inner) {
            inner.is_idle = false;
            inner.waker.take()
        } else {
            None
        };
        // Wake without the mutex: the waker may poll the keeper's task on this thread, which locks it.
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
