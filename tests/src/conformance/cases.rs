//! The number of generated sequences, and the run of a test on them.

use std::cell::Cell;

use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::step::Step;

/// A long run prints its progress after this many sequences.
const TELLING: u32 = 5_000;

/// The number of sequences, and their seed.
#[derive(Clone, Copy, Debug)]
pub struct Cases {
    /// The number of sequences: `QUORLOCK_CONFORMANCE_CASES`, or 400.
    pub count: u32,
    /// The seed: `QUORLOCK_CONFORMANCE_SEED`, or 1.
    pub seed: u64,
}

impl Cases {
    /// Reads the two variables.
    ///
    /// # Panics
    /// Panics if one is not a number.
    #[must_use]
    pub fn from_environment() -> Self {
        let number = |variable: &str, default: u32| {
            std::env::var(variable).map_or(u64::from(default), |text| {
                let number = text.parse();
                number.unwrap_or_else(|_| panic!("{variable} is not a number: {text:?}"))
            })
        };
        Cases {
            count: u32::try_from(number("QUORLOCK_CONFORMANCE_CASES", 400)).unwrap_or(u32::MAX),
            seed: number("QUORLOCK_CONFORMANCE_SEED", 1),
        }
    }

    /// Runs the test for each sequence, and shrinks the first one that fails.
    ///
    /// # Panics
    /// Panics if a sequence fails, with the smallest one that shows it.
    pub fn run(
        self,
        sequences: &impl Strategy<Value = Vec<Step>>,
        test: impl Fn(&[Step]) -> Result<(), String>,
    ) {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        let config = Config {
            cases: self.count,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let ran = Cell::new(0u32);
        let ended = TestRunner::new_with_rng(config, rng).run(sequences, |steps| {
            ran.set(ran.get() + 1);
            // The sequences that shrinking runs come after all others.
            if ran.get() <= self.count && ran.get().is_multiple_of(TELLING) {
                println!("{} of {} sequences", ran.get(), self.count);
            }
            test(&steps).map_err(proptest::test_runner::TestCaseError::fail)
        });
        if let Err(failure) = ended {
            panic!("with QUORLOCK_CONFORMANCE_SEED={}: {failure}", self.seed);
        }
    }
}
