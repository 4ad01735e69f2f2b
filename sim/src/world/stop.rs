//! A process that a plan stops at a reading of its clock.

use std::time::Duration;

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
