//! What the runs of a cell show.

use serde::Serialize;

use super::file::Experiment;
use crate::study::interval::{Interval, clopper_pearson};
use crate::study::results::{Row, Tally};

/// What the runs of a cell show.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The index of the point.
    pub point: usize,
    /// The index of the lock.
    pub lock: usize,
    /// The sums of all rows.
    pub tally: Tally,
    /// The seeds of the runs that broke the property, each with the time of the violation in nanoseconds.
    pub broken: Vec<(u64, u64)>,
    /// The seeds that were run, from the first to the last. Those of a shard have gaps.
    seeds: Option<(u64, u64)>,
}

/// A share with its bounds (95 %).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Bounds {
    /// The measured share.
    pub share: f64,
    /// The lower bound of Clopper and Pearson.
    pub least: f64,
    /// The upper bound of Clopper and Pearson.
    pub most: f64,
    /// The lower bound of Wilson, for a number of runs that was fixed before.
    pub wilson_least: f64,
    /// The upper bound of Wilson.
    pub wilson_most: f64,
}

/// The number of runs when the bounds are first looked at, if they may end a cell. It doubles each time.
pub(super) const FIRST: u64 = 64;

/// The probability that the bounds of a cell are wrong.
const ALPHA: f64 = 0.05;

impl Outcome {
    pub(super) fn new(point: usize, lock: usize) -> Self {
        Outcome {
            point,
            lock,
            tally: Tally::default(),
            broken: Vec::new(),
            seeds: None,
        }
    }

    /// Adds the row of a run. Seeds are in their order, except for those of different shards.
    pub(super) fn add(&mut self, study: &Experiment, row: &Row) {
        self.tally.add(row);
        if let Some(at) = row.violated.get(&study.property) {
            self.broken.push((row.seed, *at));
        }
        let (first, last) = self.seeds.unwrap_or((row.seed, row.seed));
        self.seeds = Some((first.min(row.seed), last.max(row.seed)));
    }

    /// Returns the share of runs that broke the property. If bounds may end a cell, they hold at all looks together.
    #[must_use]
    pub fn bounds(&self, study: &Experiment) -> Bounds {
        let (some, all) = (self.broken.len() as u64, self.tally.runs);
        let alpha = match study.half_width {
            None => ALPHA,
            // The looks are at 64, 128 and so on, and the sum over all of them is one.
            Some(_) => {
                let look = f64::from((all.div_ceil(FIRST).max(1)).next_power_of_two().ilog2() + 1);
                ALPHA / (look * (look + 1.0))
            }
        };
        let wilson = Interval::of(some, all);
        let (least, most) = match all {
            0 => (0.0, 1.0),
            _ => clopper_pearson(some, all, alpha),
        };
        Bounds {
            share: wilson.share,
            least,
            most,
            wilson_least: wilson.min,
            wilson_most: wilson.max,
        }
    }

    /// Returns whether the bounds are as narrow as the study asks for.
    pub(super) fn is_narrow(&self, study: &Experiment) -> bool {
        let bounds = self.bounds(study);
        study
            .half_width
            .is_some_and(|half| (bounds.most - bounds.least) / 2.0 <= half)
    }

    /// Returns the number of requests that nodes executed for each hold, or `None` if there was no hold.
    #[must_use]
    pub fn requests_per_hold(&self) -> Option<f64> {
        let holds = self.tally.holds;
        (0 < holds).then(|| self.tally.commands as f64 / holds as f64)
    }

    /// Returns the last seed that was run.
    pub(super) fn last_seed(&self) -> Option<u64> {
        self.seeds.map(|(_, last)| last)
    }

    /// Returns whether the runs show nothing, because no client acquired anything in any of them.
    #[must_use]
    pub fn is_vacuous(&self) -> bool {
        self.tally.runs == self.tally.vacuous
    }
}
