//! A timer of a process.

use std::task::{Context, Waker};

use crate::world::id::ClientId;

/// One timer of a process. It has at most one entry among the events that counts.
#[derive(Debug)]
pub(crate) struct Alarm {
    client: ClientId,
    /// On the monotonic clock of the process.
    deadline: u64,
    /// When the entry that counts is due; `u64::MAX` without one.
    entry_at: u64,
    entry: u32,
    waker: Waker,
}

impl Alarm {
    /// An alarm without an entry.
    pub(crate) fn new(client: ClientId, deadline: u64, waker: Waker) -> Self {
        Alarm {
            client,
            deadline,
            entry_at: u64::MAX,
            entry: 0,
            waker,
        }
    }

    pub(crate) fn client(&self) -> ClientId {
        self.client
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Sets it to a reading of the clock, for this task. Returns whether it needs to be looked when that is.
    pub(crate) fn set(&mut self, deadline: u64, cx: &Context<'_>) -> bool {
        self.waker.clone_from(cx.waker());
        if self.deadline == deadline && self.has_entry() {
            return false;
        }
        self.deadline = deadline;
        true
    }

    pub(crate) fn has_entry(&self) -> bool {
        self.entry_at != u64::MAX
    }

    /// Whether the entry that counts comes too late for a time.
    pub(crate) fn needs_entry(&self, due: u64) -> bool {
        due < self.entry_at
    }

    /// It gets another entry, due at this time. Returns which.
    pub(crate) fn begin_entry(&mut self, due: u64) -> u32 {
        self.entry = self.entry.wrapping_add(1);
        self.entry_at = due;
        self.entry
    }

    /// An entry has come up. Returns whether it is the one that counts.
    pub(crate) fn end_entry(&mut self, entry: u32) -> bool {
        if self.entry != entry {
            return false;
        }
        self.entry_at = u64::MAX;
        true
    }

    /// The entry that has come up comes up again.
    pub(crate) fn repeat_entry(&mut self, due: u64) {
        self.entry_at = due;
    }

    pub(crate) fn ring(&self) {
        self.waker.wake_by_ref();
    }
}
