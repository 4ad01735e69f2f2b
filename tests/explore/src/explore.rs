//! Runs a test under many schedules.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::pace::{Pace, Paced};

/// The default number of schedules of a test.
const SCHEDULES: u64 = 1_000;

/// The default first seed. It is fixed, so that the same tests explore the same schedules.
const SEED: u64 = 20_261_123;

/// The number of schedules of the first scheduler before the next one has its turn. Each round has twice as many.
const FIRST_ROUND: u64 = 50;

/// Runs a test under schedules of two kinds in turn, until one fails or all have run.
///
/// Random schedules choose each step independently. PCT schedules give each thread a priority and change few of them,
/// which finds races that need few pre-emptions in a long run. `QUORLOCK_SCHEDULES` sets the number of schedules,
/// `QUORLOCK_SEED` the first seed. `QUORLOCK_REPLAY`, a file that a failure has left, runs only that schedule. So does
/// `SHUTTLE_SEED`, which the failure of a random schedule prints.
///
/// # Panics
/// Panics if the test panics, in the schedule in which it does.
pub fn explore<F, T>(name: &'static str, pace: Pace, test: F)
where
    F: Fn() -> T + Send + Sync + 'static,
    T: Future<Output = ()> + 'static,
{
    let run = Explored::new(name, pace, test);
    if run.replays() {
        return;
    }
    let schedules = run.draws();
    eprintln!("{name}: {schedules} schedules");
}

/// Runs a small test under random schedules, and then under all schedules, but at most `max`.
///
/// # Panics
/// Panics if the test panics, in the schedule in which it does.
pub fn explore_all<F, T>(name: &'static str, most: usize, test: F)
where
    F: Fn() -> T + Send + Sync + 'static,
    T: Future<Output = ()> + 'static,
{
    let run = Explored::new(name, Pace::Untimed, test);
    if run.replays() {
        return;
    }
    let drawn = run.draws();
    run.with("depth first", DfsScheduler::new(Some(most), false));
    let tried = usize_of(run.begun.load(Ordering::Relaxed) - drawn);
    let all = if tried < most { "all" } else { "the first" };
    eprintln!("{name}: {drawn} schedules, and {all} {tried}");
}

struct Explored<F> {
    name: &'static str,
    pace: Pace,
    test: Arc<F>,
    begun: Arc<AtomicU64>,
}

impl<F, T> Explored<F>
where
    F: Fn() -> T + Send + Sync + 'static,
    T: Future<Output = ()> + 'static,
{
    fn new(name: &'static str, pace: Pace, test: F) -> Self {
        Explored {
            name,
            pace,
            test: Arc::new(test),
            begun: Arc::default(),
        }
    }

    /// Runs only the schedule of a file, if the environment names one. Returns whether it did.
    fn replays(&self) -> bool {
        let Some(file) = std::env::var_os("QUORLOCK_REPLAY") else {
            return false;
        };
        let replay = ReplayScheduler::new_from_file(PathBuf::from(file));
        self.with("replayed", replay.expect("a file that a failure has left"));
        true
    }

    /// Runs random and PCT schedules in turn. Returns the number of schedules.
    fn draws(&self) -> u64 {
        if let Some(seed) = number("SHUTTLE_SEED") {
            let random = RandomScheduler::new_from_seed(seed, 1);
            self.with("random", Paced::new(self.pace, random));
            return 1;
        }
        let schedules = number("QUORLOCK_SCHEDULES").unwrap_or(SCHEDULES);
        let mut seed = number("QUORLOCK_SEED").unwrap_or(SEED);
        let (mut left, mut round, mut depth) = (schedules, FIRST_ROUND, 1);
        while 0 < left {
            let random = round.min(left);
            let scheduler = RandomScheduler::new_from_seed(seed, usize_of(random));
            self.with("random", Paced::new(self.pace, scheduler));
            left -= random;
            let pct = round.min(left);
            if 0 < pct {
                depth = depth % 4 + 1;
                let scheduler = PctScheduler::new_from_seed(seed, depth + 1, usize_of(pct));
                self.with("PCT", Paced::new(self.pace, scheduler));
            }
            left -= pct;
            seed = seed.wrapping_add(1);
            round *= 2;
        }
        schedules
    }

    fn with(&self, kind: &str, scheduler: impl Scheduler + 'static) {
        let (test, begun) = (self.test.clone(), self.begun.clone());
        let runner = Runner::new(scheduler, config());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            runner.run(move || {
                begun.fetch_add(1, Ordering::Relaxed);
                shuttle::future::block_on(test());
            });
        }));
        if let Err(panic) = outcome {
            let (name, number) = (self.name, self.begun.load(Ordering::Relaxed));
            let pace = self.pace;
            eprintln!("{name} failed in schedule {number}, {kind}, clock {pace:?}");
            eprintln!("run it again: tests/threads.sh --replay FILE {name}");
            resume_unwind(panic);
        }
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = 0x4_0000;
    config.silence_warnings = true;
    // A run has thousands of steps. A run with a million of them is a busy loop.
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    config.failure_persistence = match std::env::var_os("QUORLOCK_FAILURES") {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            std::fs::create_dir_all(&folder).expect("a folder for schedules that fail");
            FailurePersistence::File(Some(folder))
        }
        None => FailurePersistence::Print,
    };
    config
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number in the environment"))
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).expect("so many schedules")
}
