//! When an acquisition tries again, and when not any more.

use std::time::Duration;

use crate::time::Time;

/// When to try again, and when not any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The first random pause after a split vote or a failed round is at most this long.
    pub backoff: Duration,
    /// No pause is longer than this.
    pub backoff_cap: Duration,
    /// How long an acquisition without a bound of its own goes on while no quorum answers, or none in time for the
    /// lease. It counts from the first round that failed since a quorum last answered.
    pub without_quorum: Duration,
    /// A waiter asks again after this time even if nothing wakes it and nothing is due to expire.
    pub poll_cap: Duration,
}

impl Default for RetryPolicy {
    /// 10 ms doubling to 1 s; 30 s without a quorum; a look every 5 s.
    fn default() -> Self {
        RetryPolicy {
            backoff: Duration::from_millis(10),
            backoff_cap: Duration::from_secs(1),
            // As long as the default watchdog lease: restarts take seconds, and by then an earlier holder has lost the lock.
            without_quorum: Duration::from_secs(30),
            poll_cap: Duration::from_secs(5),
        }
    }
}

impl RetryPolicy {
    /// The same with this bound on the first pause.
    #[must_use]
    pub const fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// The same with this bound on every pause.
    #[must_use]
    pub const fn backoff_cap(mut self, cap: Duration) -> Self {
        self.backoff_cap = cap;
        self
    }

    /// The same with this time without a quorum before an acquisition without a bound fails;
    /// [`Duration::MAX`] for as long as it takes.
    #[must_use]
    pub const fn without_quorum(mut self, span: Duration) -> Self {
        self.without_quorum = span;
        self
    }

    /// The same with a look after this time, even if nothing wakes the waiter.
    #[must_use]
    pub const fn poll_cap(mut self, cap: Duration) -> Self {
        self.poll_cap = cap;
        self
    }

    /// When a caller with this limit stops waiting, if rounds have failed since then.
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
    /// At this time, whatever the members do until then.
    At(Time),
    /// When there was no quorum for [`RetryPolicy::without_quorum`], of which only what comes after this time counts:
    /// the caller was not there before.
    WithoutQuorumFrom(Time),
}
