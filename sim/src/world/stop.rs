//! A process that a plan stops at a reading of its clock.

use std::time::Duration;

use crate::world::task::Task;

/// A stop that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// How many readings are left.
    left: u32,
    lasts: u64,
}

impl Stop {
    /// At the `nth` reading from now on, from 1.
    pub(crate) fn new(nth: u32, lasts: Duration) -> Self {
        Stop {
            left: nth.max(1),
            lasts: u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The clock is read: whether none is left.
    pub(crate) fn count(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// For how long.
    pub(crate) fn lasts(self) -> u64 {
        self.lasts
    }
}

/// Whether a process is stopped in the middle of a step now, and what is left of a process that ended meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    is_on: bool,
    graves: Vec<Task>,
}

impl Halt {
    /// One at a time: what is stopped inside another stop would go on only after that.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn begin(&mut self) {
        self.is_on = true;
    }

    pub(crate) fn end(&mut self) {
        self.is_on = false;
    }

    /// Tasks that must not be dropped before the step has ended.
    pub(crate) fn bury_later(&mut self, tasks: Vec<Task>) {
        self.graves.extend(tasks);
    }

    pub(crate) fn take_graves(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.graves)
    }
}
