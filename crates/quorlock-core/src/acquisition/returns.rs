//! Members that can be reached again while rounds fail.

use std::time::Duration;

use super::retry::RetryPolicy;
use crate::backoff::Backoff;
use crate::time::Time;

/// Upper bound of the first pause after a return, as a multiple of the policy's first pause: 100 ms by default. All
/// waiters learn of a new primary at the same moment, and this pause spreads their requests over time.
const SPREAD: u32 = 10;

/// Tracks the members that became reachable since the last round began, and how soon the next round follows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Returns {
    /// Whether a member has become reachable since the last round began.
    has_news: bool,
    /// Pauses that grow with each return that is followed by a failed round. Otherwise a server that accepts
    /// connections and closes them at the first request would be asked without pause.
    pauses: Backoff,
}

impl Returns {
    pub(super) fn new(policy: &RetryPolicy) -> Self {
        let first = policy.backoff.saturating_mul(SPREAD);
        Returns {
            has_news: false,
            pauses: Backoff::new(first, policy.backoff_cap),
        }
    }

    /// Records that a member has become reachable.
    pub(super) fn handle_return(&mut self) {
        self.has_news = true;
    }

    /// Begins a round, which asks the members that became reachable before it.
    pub(super) fn begin_round(&mut self) {
        self.has_news = false;
    }

    /// Starts from the shortest pause again, because a quorum answered.
    pub(super) fn reset(&mut self) {
        self.pauses.reset();
    }

    /// Returns when the next round begins because a member became reachable; [`Time::NEVER`] if none did.
    pub(super) fn end_of_pause(&mut self, now: Time, random: u64) -> Time {
        if self.has_news {
            now + self.pauses.next(random, Duration::ZERO)
        } else {
            Time::NEVER
        }
    }
}
