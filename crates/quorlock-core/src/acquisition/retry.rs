//! When an acquisition tries again, and when it stops.

use std::time::Duration;

use crate::time::Time;

/// When an acquisition tries again, and when it stops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Upper bound of the first random pause after a split vote or a failed round.
    pub backoff: Duration,
    /// Upper bound of every random pause. If several fair locks are acquired together and other acquisitions of them
    /// collide with this one, the bound is at least the time of 32 rounds.
    pub backoff_cap: Duration,
    /// How long an acquisition without its own time limit continues while no quorum answers, or none answers in time
    /// for the lease. Counts from the first failed round since a quorum last answered.
    pub without_quorum: Duration,
    /// A waiter asks again after this time even if nothing wakes it and no claim in its way is due to expire.
    pub poll_cap: Duration,
}

impl Default for RetryPolicy {
    /// Pauses of 10 ms doubling to 1 s, 30 s without a quorum, and a poll every 5 s.
    fn default() -> Self {
        RetryPolicy {
            backoff: Duration::from_millis(10),
            backoff_cap: Duration::from_secs(1),
            // As long as the default lease of the watchdog: a restart takes seconds, and after 30 s an earlier holder
            // has lost the lock.
            without_quorum: Duration::from_secs(30),
            poll_cap: Duration::from_secs(5),
        }
    }
}

impl RetryPolicy {
    /// Sets the upper bound of the first pause.
    #[must_use]
    pub const fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Sets the upper bound of every pause.
    #[must_use]
    pub const fn backoff_cap(mut self, cap: Duration) -> Self {
        self.backoff_cap = cap;
        self
    }

    /// Sets how long an acquisition without a time limit continues without a quorum; [`Duration::MAX`] means for ever.
    #[must_use]
    pub const fn without_quorum(mut self, span: Duration) -> Self {
        self.without_quorum = span;
        self
    }

    /// Sets the time after which a waiter asks again even if nothing wakes it.
    #[must_use]
    pub const fn poll_cap(mut self, cap: Duration) -> Self {
        self.poll_cap = cap;
        self
    }

    /// Returns when a caller with this limit stops waiting, if rounds have failed since `failing_since`.
    #[must_use]
    pub fn gives_up_at(&self, limit: Limit, failing_since: Option<Time>) -> Time {
        match limit {
            Limit::At(at) => at,
            Limit::WithoutQuorumFrom(came) => {
                failing_since.map_or(Time::NEVER, |since| since.max(came) + self.without_quorum)
            }
        }
    }
}

/// When a caller stops waiting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Limit {
    /// The caller stops at this time, whatever the members do until then.
    At(Time),
    /// The caller stops after [`RetryPolicy::without_quorum`] without a quorum. Only the time after this instant
    /// counts, because the caller was not waiting before.
    WithoutQuorumFrom(Time),
}
