//! How much happens while how much true time passes: a run that does not end does much while no time passes.

/// What happened so far, and what may happen by now: events, steps of tasks, and uses of clocks, timers, randomness and
/// network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    spent: u64,
    most: u64,
    /// What is allowed whatever time it is.
    base: u64,
}

/// So much may happen in no time: more than a thousand times what a step takes, and a second or two of a computer's time.
const AT_ONCE: u64 = 5_000_000;

/// So much may happen in each millisecond, or nearly that (2^20 nanoseconds): sixty clients that ask fifteen nodes without any
/// pause come to some thousands.
const EACH_MILLI: u64 = 100_000;

impl Default for Effort {
    fn default() -> Self {
        Effort {
            spent: 0,
            most: AT_ONCE,
            base: AT_ONCE,
        }
    }
}

impl Effort {
    /// One more thing happens. Returns whether it is one too many, and lets as many more happen then, so that the run can
    /// be put an end to.
    #[inline]
    pub(crate) fn is_too_much(&mut self) -> bool {
        self.spent += 1;
        self.most < self.spent && self.grant()
    }

    #[cold]
    fn grant(&mut self) -> bool {
        self.base = self.spent + AT_ONCE;
        self.most = self.base;
        true
    }

    /// It is this true time, in nanoseconds.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        self.most = self.base + (now >> 20) * EACH_MILLI;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_once_is_bounded_and_time_that_passes_allows_more() {
        let mut effort = Effort::default();
        let spend = |effort: &mut Effort, most: u64| (0..most).any(|_| effort.is_too_much());
        assert!(!spend(&mut effort, AT_ONCE));
        assert!(effort.is_too_much());
        assert!(!spend(&mut effort, AT_ONCE));
        let mut effort = Effort::default();
        effort.advance(10 << 20);
        assert!(!spend(&mut effort, AT_ONCE + 10 * EACH_MILLI));
        assert!(effort.is_too_much());
    }
}
