//! The pace of the clock, compared with the other tasks.

use shuttle::rand::RngCore;
use shuttle::scheduler::{DataSource, RandomDataSource, Schedule, Scheduler, Task, TaskId};

/// The number of the task that advances time; it is spawned first.
pub const CLOCK: usize = 1;

/// How time passes. If the clock ran like any other task, every lease would end before its holder has done anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The test has no clock.
    Untimed,
    /// Time stands still while any thread can run. Nothing is late, and a waiter that would wait longer has lost its
    /// wake-up.
    Idle,
    /// Time also passes at one of this many steps. Threads are stopped at any point, and leases end.
    OneIn(u64),
}

/// A scheduler that gives the clock its turn at a pace.
#[derive(Debug)]
pub(crate) struct Paced<S> {
    pace: Pace,
    inner: S,
    draws: RandomDataSource,
}

impl<S: Scheduler> Paced<S> {
    pub(crate) fn new(pace: Pace, inner: S) -> Self {
        Paced {
            pace,
            inner,
            draws: RandomDataSource::initialize(0),
        }
    }
}

impl<S: Scheduler> Scheduler for Paced<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        let schedule = self.inner.new_execution()?;
        // The turns of the clock also follow from the schedule's seed.
        self.draws = RandomDataSource::initialize(schedule.seed);
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let is_clock = |task: &Task| usize::from(task.id()) == CLOCK;
        let others: Vec<&Task> = runnable
            .iter()
            .copied()
            .filter(|task| !is_clock(task))
            .collect();
        if others.is_empty() || others.len() == runnable.len() {
            return self.inner.next_task(runnable, current, is_yielding);
        }
        match self.pace {
            Pace::Untimed => self.inner.next_task(runnable, current, is_yielding),
            Pace::OneIn(steps) if self.draws.next_u64().is_multiple_of(steps) => {
                Some(TaskId::from(CLOCK))
            }
            Pace::Idle | Pace::OneIn(_) => self.inner.next_task(&others, current, is_yielding),
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}

/// Draws a number from the schedule.
pub fn draw() -> u64 {
    shuttle::rand::thread_rng().next_u64()
}
