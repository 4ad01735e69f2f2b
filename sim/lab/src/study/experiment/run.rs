//! Runs the cells of a study, until their bounds are narrow enough.

use std::time::{Duration, Instant};

use super::cell::CellPlans;
use super::file::{Experiment, StudyError};
use super::outcome::{FIRST, Outcome};
use crate::study::results::{Manifest, MergeError, Shard, Stored, each_row};
use crate::study::runs::{Cell, Extent, Runs, RunsError, Session};

/// What of a study is run.
#[derive(Clone, Copy, Debug)]
pub struct Sitting<'a> {
    /// The study.
    pub study: &'a Experiment,
    /// The first seed of each cell.
    pub first_seed: u64,
    /// The part of the seeds that is run. A shard has all of its seeds, because only all shards together know when bounds are
    /// narrow enough.
    pub shard: Shard,
    /// The number of threads.
    pub jobs: usize,
    /// No run begins after this time.
    pub within: Option<Duration>,
}

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Finished {
    /// What the runs of each cell show, in the order of points and locks.
    pub outcomes: Vec<Outcome>,
    /// Whether all runs have ended that were asked for.
    pub extent: Extent,
}

impl Sitting<'_> {
    /// Returns the manifest of the results. Runs a few plans, which tell builds apart.
    ///
    /// # Errors
    /// Returns [`StudyError`] if the file has plans that cannot be run.
    pub fn manifest(
        &self,
        law: &impl serde::Serialize,
        flags: Vec<String>,
    ) -> Result<Manifest, StudyError> {
        let cells = self.study.cells()?;
        let all = cells
            .iter()
            .map(|cell| self.seeds(cell, 0, self.study.runs));
        let runs = Runs {
            cells: all.collect(),
            shard: self.shard,
            jobs: self.jobs,
            within: None,
        };
        Ok(runs.manifest(law, flags))
    }

    /// Runs what is not there yet.
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be read or written.
    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    pub fn run(&self, session: &mut Session) -> Result<Finished, RunsError> {
        let cells = self.study.cells().expect("BUG: the file was checked");
        let mut outcomes = blank(self.study);
        let deadline = self
            .within
            .and_then(|within| Instant::now().checked_add(within));
        let mut extent = Extent::Complete;
        let mut from = 0;
        while extent == Extent::Complete && from < self.study.runs {
            let until = self.next(from);
            let open = |index: &usize| from == 0 || !is_over(self.study, &outcomes, *index);
            let open: Vec<usize> = (0..cells.len()).filter(open).collect();
            let asked = open.iter().filter_map(|index| cells.get(*index));
            let runs = Runs {
                cells: asked.map(|cell| self.seeds(cell, from, until)).collect(),
                shard: self.shard,
                jobs: self.jobs,
                within: deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            };
            extent = session.run(&runs, &mut |cell, row| {
                let outcome = open.get(cell).and_then(|index| outcomes.get_mut(*index));
                if let Some(outcome) = outcome {
                    outcome.add(self.study, &row);
                }
            })?;
            from = until;
        }
        Ok(Finished { outcomes, extent })
    }

    /// Returns the number of runs of a cell at the next look.
    fn next(&self, runs: u64) -> u64 {
        let may_end = self.study.half_width.is_some() && self.shard == Shard::WHOLE;
        let next = match may_end {
            true => (2 * runs).max(FIRST),
            false => self.study.runs,
        };
        next.min(self.study.runs)
    }

    fn seeds<'c>(&self, cell: &'c CellPlans<'_>, from: u64, until: u64) -> Cell<'c> {
        Cell {
            name: self.study.cell_name(cell.point, cell.lock),
            seeds: self.first_seed + from..self.first_seed + until,
            plan: Box::new(|seed| cell.plan(seed)),
            measure: None,
            is_last: None,
        }
    }
}

fn is_over(study: &Experiment, outcomes: &[Outcome], index: usize) -> bool {
    outcomes
        .get(index)
        .is_some_and(|outcome| outcome.is_narrow(study))
}

fn blank(study: &Experiment) -> Vec<Outcome> {
    let points = 0..study.points.len();
    let locks = 0..study.locks.len();
    let cells = points.flat_map(|point| locks.clone().map(move |lock| (point, lock)));
    cells
        .map(|(point, lock)| Outcome::new(point, lock))
        .collect()
}

impl Finished {
    /// Reads what shards have found.
    ///
    /// # Errors
    /// Returns [`MergeError`] if a file has something else than rows of the study.
    pub fn read(study: &Experiment, shards: &[Stored]) -> Result<Self, MergeError> {
        let mut outcomes = blank(study);
        each_row(shards, &mut |cell, row| {
            if let Some(outcome) = outcomes.get_mut(cell) {
                outcome.add(study, &row);
            }
        })?;
        for outcome in &mut outcomes {
            outcome.broken.sort_unstable();
        }
        Ok(Finished {
            outcomes,
            extent: Extent::Complete,
        })
    }
}
