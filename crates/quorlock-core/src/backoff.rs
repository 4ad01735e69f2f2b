//! Random pauses after lost rounds, so that competitors do not collide for ever.

use std::time::Duration;

/// Exponential back-off with full jitter. The n-th pause is uniform in `(0, min(cap, base * 2^n)]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    tries: u32,
    most_doublings: u32,
}

/// The largest number of doublings of any back-off: 2^31 is the largest power of two in a `u32`.
const MOST_DOUBLINGS: u32 = 31;

impl Backoff {
    /// Returns a back-off whose first pause is at most `base` and whose pauses never exceed `cap`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        Backoff {
            base,
            cap,
            tries: 0,
            most_doublings: MOST_DOUBLINGS,
        }
    }

    /// Limits the number of doublings, which bounds the pauses by a multiple of the base.
    #[must_use]
    pub fn most_doublings(mut self, doublings: u32) -> Self {
        self.most_doublings = doublings.min(MOST_DOUBLINGS);
        self
    }

    /// Raises the longest pause to `least` if it is shorter.
    #[must_use]
    pub fn cap_at_least(mut self, least: Duration) -> Self {
        self.cap = self.cap.max(least);
        self
    }

    /// Returns the next pause. `random` is any 64 random bits. `at_least_base` raises the base for this pause, for
    /// example to the length of the lost round.
    pub fn next(&mut self, random: u64, at_least_base: Duration) -> Duration {
        let doubled = 1u32.checked_shl(self.tries).unwrap_or(u32::MAX);
        let bound = self
            .base
            .max(at_least_base)
            .saturating_mul(doubled)
            .min(self.cap);
        self.tries = self.tries.saturating_add(1).min(self.most_doublings);
        let bound = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let below = (u128::from(bound) * u128::from(random)) >> 64;
        Duration::from_nanos(u64::try_from(below).unwrap_or(u64::MAX).saturating_add(1))
    }

    /// Starts again from the base.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_double_up_to_the_cap() {
        let mut backoff = Backoff::new(10 * MS, 100 * MS);
        let longest: Vec<_> = (0..6)
            .map(|_| backoff.next(u64::MAX, Duration::ZERO))
            .collect();
        assert_eq!(longest, [10, 20, 40, 80, 100, 100].map(|n| n * MS));
        backoff.reset();
        assert_eq!(backoff.next(u64::MAX, Duration::ZERO), 10 * MS);
    }

    #[test]
    fn a_pause_is_never_nothing_and_never_panics() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX);
        for random in [0, 1, u64::MAX / 2, u64::MAX] {
            for _ in 0..40 {
                assert!(Duration::ZERO < backoff.next(random, Duration::ZERO));
            }
        }
        assert_eq!(
            Backoff::new(Duration::ZERO, Duration::ZERO).next(0, Duration::ZERO),
            Duration::from_nanos(1)
        );
    }

    #[test]
    fn pauses_of_few_doublings_stay_short() {
        let mut backoff = Backoff::new(MS, 100 * MS).most_doublings(2);
        let longest: Vec<_> = (0..4)
            .map(|_| backoff.next(u64::MAX, Duration::ZERO))
            .collect();
        assert_eq!(longest, [1, 2, 4, 4].map(|n| n * MS));
    }

    #[test]
    fn a_slow_round_raises_the_base_but_not_the_cap() {
        let mut backoff = Backoff::new(10 * MS, 100 * MS);
        assert_eq!(backoff.next(u64::MAX, 30 * MS), 30 * MS);
        assert_eq!(backoff.next(u64::MAX, 500 * MS), 100 * MS);
    }
}
