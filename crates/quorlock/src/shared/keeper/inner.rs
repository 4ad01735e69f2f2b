//! What the keeper's task and the client share, under one mutex.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::task::Waker;

use quorlock_core::time::Time;

use super::phase::{GiveBack, Phase};
use super::{Message, TICK};
use crate::shared::hold::Hold;
use crate::shared::waiters::{Led, Waiters};

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// By owner number, which no two holds of a client share.
    pub(super) holds: BTreeMap<u64, Kept>,
    pub(super) due: BTreeSet<(Time, u64)>,
    pub(super) inbox: Vec<Message>,
    /// When to look at the inbox.
    pub(super) inbox_due: Time,
    /// Queues whose leaders were woken on behalf of others, since the task looked last.
    pub(super) queues: Vec<Arc<dyn Led>>,
    /// Guards that are out: each has its place in the inbox, so that dropping one never allocates.
    pub(super) guards: usize,
    pub(super) waker: Option<Waker>,
    pub(super) wakes_at: Time,
    pub(super) give_back: GiveBack,
    pub(super) is_idle: bool,
    pub(super) waiting_for_idle: Vec<Waker>,
    /// Claims may be left of locks of which another client was closed, and who waits for their end.
    pub(super) is_closing_others: bool,
    pub(super) waiting_for_others: Vec<Waker>,
    /// Waiters of the client, who are told when the task ends before its time.
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

    /// Whether what is held is being given back: which nodes are trusted does not matter any more.
    pub(super) fn is_giving_back(&self, phase: Phase) -> bool {
        self.give_back != GiveBack::None || phase == Phase::Finishing
    }

    /// Whether holds may be left of locks of which another client was closed.
    pub(super) fn has_closed_members(&self) -> bool {
        let mut holds = self.holds.values();
        self.give_back != GiveBack::None
            || !self.inbox.is_empty()
            || holds.any(|kept| kept.hold.layout.is_closed())
    }

    /// When the task looks at what is here, if nothing wakes it before.
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
        mail.min(holds).min(queues)
    }

    /// Files a hold under the time at which it is due. The hold is asked here, under the mutex, so that an older
    /// answer never takes the place of a newer one.
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

    /// Makes a place in the inbox for the drop of one more guard.
    pub(super) fn reserve(&mut self) {
        self.guards += 1;
        self.inbox.reserve(self.guards);
    }

    pub(super) fn forget(&mut self, number: u64) {
        if let Some(kept) = self.holds.remove(&number) {
            self.due.remove(&(kept.due, number));
        }
    }

    /// Changes places with the inbox, if it is due, and takes the part of what is held that is given back.
    pub(super) fn take_messages(
        &mut self,
        now: Time,
        mail: &mut Vec<Message>,
    ) -> Option<Vec<Arc<Hold>>> {
        // Until the task says what is under way: what it takes from here is in its hands, and no list shows it. Another
        // thread that closes the client meanwhile would find nothing left.
        self.is_idle = false;
        if self.inbox_due <= now {
            self.inbox_due = Time::NEVER;
            // It becomes the inbox, in which each guard has its place.
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

    /// Tasks whose wait for the end of all work, or of what is left of closed clients, is over. They are woken outside the mutex.
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
