//! A timer of a process.

use std::task::{Context, Waker};

use crate::world::id::ClientId;

/// A timer of a process. At most one of its entries among the events is current. The others are ignored.
#[derive(Debug)]
pub struct Alarm {
    client: ClientId,
    /// When the timer fires, on the monotonic clock of the process.
    deadline: u64,
    /// When the current entry is due, or `u64::MAX` if there is none.
    entry_at: u64,
    entry: u32,
    waker: Waker,
}

impl Alarm {
    /// Creates an alarm without an entry.
    pub fn new(client: ClientId, deadline: u64, waker: Waker) -> Self {
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

    /// Sets the reading of the clock at which the alarm wakes this task. Returns whether its entry has to be checked.
    pub fn set(&mut self, deadline: u64, cx: &Context<'_>) -> bool {
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

    /// Returns whether the current entry is due later than this time.
    pub(crate) fn needs_entry(&self, due: u64) -> bool {
        due < self.entry_at
    }

    /// Begins another entry, due at this time. Returns its number.
    pub(crate) fn begin_entry(&mut self, due: u64) -> u32 {
        self.entry = self.entry.wrapping_add(1);
        self.entry_at = due;
        self.entry
    }

    /// Ends an entry that came due. Returns whether it was the current one.
    pub(crate) fn end_entry(&mut self, entry: u32) -> bool {
        if self.entry != entry {
            return false;
        }
        self.entry_at = u64::MAX;
        true
    }

    /// Schedules the entry that has just come due again.
    pub(crate) fn repeat_entry(&mut self, due: u64) {
        self.entry_at = due;
    }

    pub(crate) fn ring(&self) {
        self.waker.wake_by_ref();
    }
}
