//! Bounds on how much may happen in a span of true time. They detect a run that never ends because it does much while no
//! time passes.

/// The number of occurrences so far, and the number that is allowed by now. An occurrence is an event, a step of a task,
/// or a use of a clock, a timer, randomness or the network.
#[derive(Clone, Copy, Debug)]
pub struct LivelockDetector {
    spent: u64,
    max: u64,
    /// The bound at true time 0.
    base: u64,
}

/// How much may happen while no time passes: more than a thousand times what a step needs, or about a second or two of
/// computing time.
const AT_ONCE: u64 = 5_000_000;

/// How much more may happen in each millisecond (precisely, 2^20 nanoseconds). Sixty clients that send requests to
/// fifteen nodes without any pause need some thousands.
const EACH_MILLI: u64 = 100_000;

impl Default for LivelockDetector {
    fn default() -> Self {
        LivelockDetector {
            spent: 0,
            max: AT_ONCE,
            base: AT_ONCE,
        }
    }
}

impl LivelockDetector {
    /// Counts one more occurrence. Returns whether that is too much. If so, it allows as much again, so that the run
    /// can be ended.
    #[inline]
    pub(crate) fn is_too_much(&mut self) -> bool {
        self.spent += 1;
        self.max < self.spent && self.grant()
    }

    #[cold]
    fn grant(&mut self) -> bool {
        self.base = self.spent + AT_ONCE;
        self.max = self.base;
        true
    }

    /// Sets the true time, in nanoseconds.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.max = self.base + (now >> 20) * EACH_MILLI;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_once_is_bounded_and_time_that_passes_allows_more() {
        let mut livelock = LivelockDetector::default();
        let spend =
            |livelock: &mut LivelockDetector, max: u64| (0..max).any(|_| livelock.is_too_much());
        assert!(!spend(&mut livelock, AT_ONCE));
        assert!(livelock.is_too_much());
        assert!(!spend(&mut livelock, AT_ONCE));
        let mut livelock = LivelockDetector::default();
        livelock.advance(10 << 20);
        assert!(!spend(&mut livelock, AT_ONCE + 10 * EACH_MILLI));
        assert!(livelock.is_too_much());
    }
}
