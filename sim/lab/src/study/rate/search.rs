//! Runs clusters where the bounds are widest, until they are narrow enough or the time is over.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::deployment::Deployment;
use super::estimate::{Counts, Estimate, FIRST};
use super::sample::{cluster, quiet};
use super::served::Served;
use super::strata::Strata;
use crate::study::measure::Measure;
use crate::study::results::{CellSeeds, Manifest, Row, Shard};
use crate::study::runs::{Cell, Extent, Runs, RunsError, Session};

/// What is estimated, and when it is good enough.
#[derive(Debug)]
pub struct Search<'a> {
    /// The deployment.
    pub deployment: &'a Deployment,
    /// The number of threads.
    pub jobs: usize,
    /// The search ends when the relative error is at most this.
    pub relative_error: f64,
    /// No run begins after this time.
    pub within: Option<Duration>,
    /// The search ends before it has more runs than this.
    pub most_runs: u64,
    /// The first seed of each stratum.
    pub first_seed: u64,
    /// The part of the runs that is run. The runs of a shard do not depend on what the others find: see [`super::split`].
    pub shard: Shard,
}

/// How a search ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// With an estimate.
    Estimate(Estimate),
    /// The plan breaks the property without any fault, with this seed. Then the rate has no bound.
    BreaksAlone(u64),
    /// This shard has run its part, or the time was over first. The shards together have an estimate.
    Shard(Extent),
}

/// The name of the cell without strikes.
pub(super) const QUIET: &str = "no fault";

/// The number of runs without strikes.
const QUIET_RUNS: u64 = 64;

/// The seeds of each cell in the manifest. How many of them are run follows from the rows.
const SEEDS: u64 = 1 << 40;

/// What was run without strikes.
#[derive(Default)]
pub(super) struct Quiet {
    /// The first seed that broke the property.
    pub(super) broken: Option<u64>,
    /// How the lock served its clients.
    pub(super) served: Served,
}

impl Quiet {
    /// Adds a run.
    pub(super) fn add(&mut self, row: &Row, is_broken: bool) {
        self.broken = self.broken.or(is_broken.then_some(row.seed));
        self.served.add(row);
    }
}

pub(super) struct Stage<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) strata: &'a Strata,
    deadline: Option<Instant>,
}

impl Search<'_> {
    /// Returns the manifest of the results. Runs a few clusters, which tell builds apart.
    #[must_use]
    pub fn manifest(&self, law: &impl serde::Serialize, flags: Vec<String>) -> Manifest {
        let strata = Strata::of(self.deployment);
        let stage = self.stage(&strata);
        let probed = Runs::all(vec![stage.quiet(0..1)], 1);
        let mut manifest = probed.manifest(law, flags);
        let names = strata.all.iter().map(|stratum| stratum.name.as_str());
        let cells = std::iter::once(QUIET).chain(names).map(|name| CellSeeds {
            cell: name.to_owned(),
            seeds: self.first_seed..self.first_seed + SEEDS,
        });
        manifest.cells = cells.collect();
        manifest.shard = self.shard;
        manifest
    }

    /// Runs clusters. Which ones follows from the rows alone, so a search that is continued has the rows of one that was not
    /// interrupted.
    ///
    /// # Errors
    /// Returns [`RunsError`] if results cannot be read or written.
    pub fn run(&self, session: &mut Session) -> Result<Found, RunsError> {
        let strata = Strata::of(self.deployment);
        let stage = self.stage(&strata);
        if self.shard != Shard::WHOLE {
            return stage.run_shard(session);
        }
        let quiet = stage.run_quiet(session)?;
        if let Some(seed) = quiet.broken {
            return Ok(Found::BreaksAlone(seed));
        }
        let (counts, _) = stage.search(session, self.most_runs)?;
        let estimate = Estimate::of(self.deployment, &strata, &counts, &quiet.served);
        Ok(Found::Estimate(estimate))
    }

    /// Returns the stratum that is run next, or `None` if the bounds are narrow enough or it would be too many runs.
    pub(super) fn next(
        &self,
        estimate: &Estimate,
        counts: &[Counts],
        most_runs: u64,
    ) -> Option<usize> {
        let next = widest(estimate, counts)?;
        let runs = counts.get(next).map_or(0, |counts| counts.next());
        let is_over = most_runs < estimate.runs + runs || estimate.is_within(self.relative_error);
        (!is_over).then_some(next)
    }

    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    fn stage<'a>(&'a self, strata: &'a Strata) -> Stage<'a> {
        Stage {
            search: self,
            strata,
            deadline: self
                .within
                .and_then(|within| Instant::now().checked_add(within)),
        }
    }
}

/// Returns the stratum whose bounds narrow most for a run.
fn widest(estimate: &Estimate, counts: &[Counts]) -> Option<usize> {
    let gains = estimate.strata.iter().zip(counts);
    let gains = gains.map(|(part, counts)| part.width() / counts.next() as f64);
    let best = gains
        .enumerate()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    best.filter(|(_, gain)| 0.0 < *gain).map(|(index, _)| index)
}

impl Stage<'_> {
    /// Runs strata until the bounds are narrow enough, or there would be too many runs.
    pub(super) fn search(
        &self,
        session: &mut Session,
        most_runs: u64,
    ) -> Result<(Vec<Counts>, Extent), RunsError> {
        let all: Vec<usize> = (0..self.strata.all.len()).collect();
        let mut counts = vec![Counts::default(); all.len()];
        let mut extent = match FIRST * all.len() as u64 {
            runs if runs <= most_runs => self.look(session, &mut counts, &all)?,
            _ => return Ok((counts, Extent::Complete)),
        };
        while extent == Extent::Complete {
            let estimate = self.estimate(&counts);
            let Some(next) = self.search.next(&estimate, &counts, most_runs) else {
                break;
            };
            extent = self.look(session, &mut counts, &[next])?;
        }
        Ok((counts, extent))
    }

    /// Returns the estimate of counts, for its bounds alone.
    pub(super) fn estimate(&self, counts: &[Counts]) -> Estimate {
        let deployment = self.search.deployment;
        Estimate::of(deployment, self.strata, counts, &Served::default())
    }

    /// Runs plans without strikes.
    pub(super) fn run_quiet(&self, session: &mut Session) -> Result<Quiet, RunsError> {
        let mut ran = Quiet::default();
        let mut take = |_, row: Row| ran.add(&row, self.search.deployment.is_broken(&row));
        self.run(
            session,
            Runs::all(vec![self.quiet(0..QUIET_RUNS)], 1),
            &mut take,
        )?;
        Ok(ran)
    }

    /// Runs strata up to their next look, and counts all of that or nothing.
    fn look(
        &self,
        session: &mut Session,
        counts: &mut [Counts],
        strata: &[usize],
    ) -> Result<Extent, RunsError> {
        let before = |index: usize| counts.get(index).copied().unwrap_or_default();
        let cells = strata.iter().map(|index| self.cell(*index, before(*index)));
        let mut added = vec![Counts::default(); strata.len()];
        let mut take = |cell: usize, row: Row| {
            if let Some(added) = added.get_mut(cell) {
                added.add(&row, self.search.deployment.is_broken(&row));
            }
        };
        let extent = self.run(session, Runs::all(cells.collect(), 1), &mut take)?;
        if extent == Extent::Partial {
            return Ok(extent);
        }
        for (index, added) in strata.iter().zip(added) {
            if let Some(counts) = counts.get_mut(*index) {
                counts.add_look(&added);
            }
        }
        Ok(extent)
    }

    #[expect(clippy::disallowed_methods, reason = "it measures the real machine")]
    pub(super) fn run(
        &self,
        session: &mut Session,
        runs: Runs<'_>,
        take: &mut (dyn FnMut(usize, Row) + Send),
    ) -> Result<Extent, RunsError> {
        let now = Instant::now();
        let runs = Runs {
            within: self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now)),
            jobs: self.search.jobs,
            ..runs
        };
        session.run(&runs, take)
    }

    fn cell(&self, index: usize, counts: Counts) -> Cell<'_> {
        self.cell_of(index, counts.runs..counts.next())
    }

    /// Returns the cell of a stratum with the seeds that have these numbers.
    pub(super) fn cell_of(&self, index: usize, numbers: Range<u64>) -> Cell<'_> {
        let stratum = self.strata.all.get(index);
        Cell {
            name: stratum.map_or_else(String::new, |stratum| stratum.name.clone()),
            seeds: self.seeds(numbers),
            plan: Box::new(move |seed| cluster(self.search.deployment, self.strata, index, seed)),
            measure: self.measure(),
            is_last: None,
        }
    }

    fn quiet(&self, numbers: Range<u64>) -> Cell<'_> {
        Cell {
            name: QUIET.to_owned(),
            seeds: self.seeds(numbers),
            plan: Box::new(|seed| quiet(self.search.deployment, seed)),
            measure: self.measure(),
            is_last: None,
        }
    }

    /// Faults strike after the first window.
    fn measure(&self) -> Option<Measure> {
        Some(Measure::Service(self.search.deployment.window))
    }

    fn seeds(&self, numbers: Range<u64>) -> Range<u64> {
        let first = self.search.first_seed;
        first + numbers.start..first + numbers.end
    }
}
