//! Members that can be reached again while rounds fail.

use std::time::Duration;

use super::retry::RetryPolicy;
use crate::backoff::Backoff;
use crate::time::Time;

/// The first pause after a return is at most so many times the first pause of the policy: by default 100 ms. All waiters
/// hear of a new primary at the same moment, and their requests are spread over that time.
const SPREAD: u32 = 10;

/// Returns since the last round was begun, and how soon a round follows them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Returns {
    /// Whether a member has come back since the last round was begun.
    has_news: bool,
    /// The pause grows with each return after which a round has failed: a server that takes connections and ends them at
    /// the first request would be asked all the time.
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

    /// A member has come back.
    pub(super) fn handle_return(&mut self) {
        self.has_news = true;
    }

    /// A round begins: it asks the members that came back before it.
    pub(super) fn begin_round(&mut self) {
        self.has_news = false;
    }

    /// A quorum answered.
    pub(super) fn reset(&mut self) {
        self.pauses.reset();
    }

    /// When the next round begins because of what came back; [`Time::NEVER`] if nothing did.
    pub(super) fn end_of_pause(&mut self, now: Time, random: u64) -> Time {
        if self.has_news {
            now + self.pauses.next(random, Duration::ZERO)
        } else {
            Time::NEVER
        }
    }
}
