//! A branch of a run: from an instant on, everything that happens by chance is drawn anew.

use quorlock_sim_plan::draw::branched;

/// Where a run branches off from the run of its plan. What happened before, and what was drawn before, is the same in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Branch {
    at: u64,
    seed: u64,
    is_taken: bool,
}

impl Branch {
    /// Creates a branch at an instant, in nanoseconds of true time, with the seed of what follows.
    #[must_use]
    pub fn new(at: u64, seed: u64) -> Self {
        Branch {
            at,
            seed,
            is_taken: false,
        }
    }

    /// Takes the branch if its instant has come. Returns its seed the first time.
    pub(super) fn take(&mut self, now: u64) -> Option<u64> {
        let is_due = !self.is_taken && self.at <= now;
        self.is_taken |= is_due;
        is_due.then_some(self.seed)
    }

    /// Returns what the branch makes of random bits.
    pub(super) fn drawn(&self, bits: u64) -> u64 {
        match self.is_taken {
            true => branched(bits, self.seed),
            false => bits,
        }
    }
}
