//! The state that the keeper's task and the client share, under one mutex.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::task::Waker;

use quorlock_core::time::Time;

use super::phase::{GiveBack, Phase};
use super::{Message, TICK};
use crate::shared::hold::Hold;
use crate::shared::waiters::{FirstInLine, Waiters};

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// The holds by owner number, which is unique in a client.
    pub(super) holds: BTreeMap<u64, Kept>,
    pub(super) due: BTreeSet<(Time, u64)>,
    pub(super) inbox: Vec<Message>,
    /// When the task must read the inbox.
    pub(super) inbox_due: Time,
    /// Queues whose first waiters were woken on behalf of others since the task's last look.
    pub(super) queues: Vec<Arc<dyn FirstInLine>>,
    /// The holds whose guards were dropped and that stay locked until a time, by that time and a number.
    staying: BTreeMap<(Time, u64), Arc<Hold>>,
    stays: u64,
    /// The number of guards that exist. Each has a place in the inbox, so that dropping one never allocates.
    pub(super) guards: usize,
    pub(super) waker: Option<Waker>,
    pub(super) wakes_at: Time,
    pub(super) give_back: GiveBack,
    pub(super) is_idle: bool,
    pub(super) waiting_for_idle: Vec<Waker>,
    /// Whether locks that include nodes of a closed client may still have claims.
    pub(super) is_closing_others: bool,
    pub(super) waiting_for_others: Vec<Waker>,
    /// The client's waiters, which are notified when the task ends early.
    pub(super) waiters: Option<Weak<dyn Waiters>>,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) hold: Arc<Hold>,
    pub(super) due: Time,
}

impl Inner {
    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.inbox.is_empty()
    }

    /// Whether all holds are being released, so that trust in nodes no longer matters and no node is probed.
    pub(super) fn is_giving_back(&self, phase: Phase) -> bool {
        self.give_back != GiveBack::None || phase != Phase::Running
    }

    /// Whether locks that include nodes of a closed client may still be held.
    pub(super) fn has_closed_members(&self) -> bool {
        let mut holds = self.holds.values();
        self.give_back != GiveBack::None
            || !self.inbox.is_empty()
            || holds.any(|kept| kept.hold.layout.is_closed())
    }

    /// Keeps a hold locked until a time.
    pub(super) fn stay(&mut self, until: Time, hold: Arc<Hold>) {
        self.stays += 1;
        self.staying.insert((until, self.stays), hold);
    }

    /// Removes and returns a hold that stays locked, if it still does.
    pub(super) fn end_stay(&mut self, hold: &Arc<Hold>) -> Option<Arc<Hold>> {
        let mut staying = self.staying.iter();
        let (&place, _) = staying.find(|(_, other)| Arc::ptr_eq(other, hold))?;
        self.staying.remove(&place)
    }

    /// Removes and returns a hold that has stayed locked until its time.
    pub(super) fn take_stayed(&mut self, now: Time) -> Option<Arc<Hold>> {
        let first = self.staying.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The holds that stay locked, by owner number.
    pub(super) fn staying(&self) -> BTreeSet<u64> {
        self.staying
            .values()
            .map(|hold| hold.owner.number)
            .collect()
    }

    /// When the task must look at this state, if nothing wakes it earlier.
    pub(super) fn poll_timeout(&self, now: Time) -> Time {
        let holds = self.due.first();
        let holds = holds.map_or(Time::NEVER, |(due, _)| (*due).min(now + TICK));
        let mail = match self.give_back {
            GiveBack::None => self.inbox_due,
            GiveBack::OfClosedClients | GiveBack::All => now,
        };
        let queues = if self.queues.is_empty() {
            Time::NEVER
        } else {
            now
        };
        let stays = self.staying.first_key_value();
        let stays = stays.map_or(Time::NEVER, |((until, _), _)| *until);
        mail.min(holds).min(queues).min(stays)
    }

    /// Files a hold under the time at which it is due.
    /// That time is read here, under the mutex. Otherwise A could read it and be suspended; B shortens the hold's
    /// validity and files an earlier time; A then replaces it by the older, later one, and the renewal is sent too
    /// late.
    pub(super) fn schedule(&mut self, hold: &Arc<Hold>) -> Time {
        let due = hold.poll_timeout();
        let number = hold.owner.number;
        let kept = Kept {
            hold: hold.clone(),
            due,
        };
        if let Some(before) = self.holds.insert(number, kept) {
            self.due.remove(&(before.due, number));
        }
        self.due.insert((due, number));
        due
    }

    /// Reserves a place in the inbox for the drop of one more guard.
    pub(super) fn reserve(&mut self) {
        self.guards += 1;
        self.inbox.reserve(self.guards);
    }

    /// Whether this hold is kept, and not the one to which it has passed, which has the same owner.
    pub(super) fn keeps(&self, hold: &Hold) -> bool {
        let kept = self.holds.get(&hold.owner.number);
        kept.is_some_and(|kept| std::ptr::eq(&*kept.hold, hold))
    }

    pub(super) fn forget(&mut self, hold: &Hold) {
        let number = hold.owner.number;
        if self.keeps(hold)
            && let Some(kept) = self.holds.remove(&number)
        {
            self.due.remove(&(kept.due, number));
        }
    }

    /// Takes the messages, if they are due, and returns the holds to release, if any.
    pub(super) fn take_messages(
        &mut self,
        now: Time,
        mail: &mut Vec<Message>,
    ) -> Option<Vec<Arc<Hold>>> {
        // Between this point and the task's next report, the messages that it takes here are in no list. Without this
        // line, another thread that closes the client now would find nothing left, although a release is still unsent.
        self.is_idle = false;
        if self.inbox_due <= now {
            self.inbox_due = Time::NEVER;
            // This list becomes the inbox, in which each guard needs its place.
            mail.reserve(self.guards);
            std::mem::swap(mail, &mut self.inbox);
        }
        let give_back = std::mem::take(&mut self.give_back);
        let holds = self.holds.values().map(|kept| kept.hold.clone());
        let is_all = give_back == GiveBack::All;
        let closing = holds.filter(|hold| is_all || hold.layout.is_closed());
        (give_back != GiveBack::None).then(|| closing.collect())
    }

    /// The next hold that is due.
    pub(super) fn next_due(&self, now: Time) -> Option<Arc<Hold>> {
        let (_, number) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.holds.get(number).map(|kept| kept.hold.clone())
    }

    /// Removes and returns the tasks that waited for the end of all work, or of all claims on nodes of closed
    /// clients. The caller wakes them without the mutex.
    pub(super) fn take_waiting(
        &mut self,
        is_idle: bool,
        has_closed_node: impl FnOnce() -> bool,
    ) -> Vec<Waker> {
        let mut waiting = Vec::new();
        if is_idle && self.holds.is_empty() {
            waiting.append(&mut self.waiting_for_idle);
        }
        if self.is_closing_others && !self.has_closed_members() && !has_closed_node() {
            self.is_closing_others = false;
            waiting.append(&mut self.waiting_for_others);
        }
        waiting
    }
}
