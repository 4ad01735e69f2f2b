//! The expected number of violations with its bounds, from the counts of the strata.

use serde::Serialize;

use super::deployment::Deployment;
use super::process::seconds;
use super::served::{Served, Serving};
use super::strata::Strata;
use crate::study::interval::clopper_pearson;
use crate::study::results::Row;

/// The probability that any of the bounds is wrong.
const ALPHA: f64 = 0.05;

/// The number of runs of a stratum when it is first looked at. It doubles each time.
pub(super) const FIRST: u64 = 64;

/// What was run of a stratum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    /// How many times the counts were looked at.
    pub(super) looks: u32,
    /// The number of runs.
    pub(super) runs: u64,
    /// The number of runs that broke the property.
    pub(super) broken: u64,
    /// How the lock served its clients in these runs.
    pub(super) served: Served,
}

impl Counts {
    /// Adds a run.
    pub(super) fn add(&mut self, row: &Row, is_broken: bool) {
        self.runs += 1;
        self.broken += u64::from(is_broken);
        self.served.add(row);
    }

    /// Adds the runs of a look.
    pub(super) fn add_look(&mut self, added: &Counts) {
        self.looks += 1;
        self.runs += added.runs;
        self.broken += added.broken;
        self.served.add_all(&added.served);
    }

    /// Returns the number of runs of the next look.
    pub(super) fn next(self) -> u64 {
        (2 * self.runs).max(FIRST)
    }

    /// Returns the bounds of the probability of a violation, for one of `strata`. They hold at all looks of all strata
    /// together with a probability of 95 %, so they may be looked at again, and the runs may go where the bounds are wide.
    fn bounds(self, strata: usize) -> (f64, f64) {
        if self.looks == 0 {
            return (0.0, 1.0);
        }
        let look = f64::from(self.looks);
        // The sum of these over all looks is one.
        let share = 1.0 / (look * (look + 1.0));
        clopper_pearson(self.broken, self.runs, ALPHA * share / strata as f64)
    }
}

/// The expected number of violations in the horizon.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The expected number of clusters in which the property is violated.
    pub rate: f64,
    /// Its lower bound.
    pub lower: f64,
    /// Its upper bound. What was not run counts as violated.
    pub upper: f64,
    /// Half of the distance of the bounds, as a part of the rate; `None` if no violation was found.
    pub relative_error: Option<f64>,
    /// The number of runs.
    pub runs: u64,
    /// The share of the horizon in which faults do not keep clients from a lock. Clusters that were not run are not in it.
    pub availability: f64,
    /// How the lock serves its clients without faults.
    pub quiet: Option<Serving>,
    /// The strata that were run, and those that were not: larger clusters, and faults that last too long.
    pub strata: Vec<Part>,
}

/// The part of a stratum in the estimate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Part {
    /// Which faults are in its clusters.
    pub cut_set: String,
    /// The expected number of its clusters in the horizon.
    pub clusters: f64,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that broke the property.
    pub broken: u64,
    /// The expected number of violations in the horizon.
    pub rate: f64,
    /// Its lower bound.
    pub lower: f64,
    /// Its upper bound.
    pub upper: f64,
    /// How the lock serves its clients from the first fault of such a cluster on.
    pub serving: Option<Serving>,
}

impl Part {
    fn of(cut_set: &str, clusters: f64, counts: &Counts, quiet: &Served, strata: usize) -> Self {
        let (least, most) = counts.bounds(strata);
        let share = counts.broken as f64 / counts.runs.max(1) as f64;
        Part {
            cut_set: cut_set.to_owned(),
            clusters,
            runs: counts.runs,
            broken: counts.broken,
            rate: clusters * share,
            lower: clusters * least,
            upper: clusters * most,
            serving: counts.served.compared_with(quiet),
        }
    }

    /// Returns the distance of the bounds.
    pub(super) fn width(&self) -> f64 {
        self.upper - self.lower
    }
}

impl Estimate {
    /// Computes the estimate of counts.
    pub(super) fn of(
        deployment: &Deployment,
        strata: &Strata,
        counts: &[Counts],
        quiet: &Served,
    ) -> Self {
        let many = strata.all.len();
        let run = strata.all.iter().zip(counts);
        let mut parts: Vec<Part> = run
            .map(|(stratum, counts)| {
                Part::of(&stratum.name, stratum.per_horizon, counts, quiet, many)
            })
            .collect();
        for (name, clusters) in [
            ("larger clusters", strata.larger),
            ("faults that last longer", strata.too_long),
        ] {
            parts.push(Part::of(name, clusters, &Counts::default(), quiet, many));
        }
        let sum = |of: fn(&Part) -> f64| parts.iter().map(of).sum::<f64>();
        let (rate, lower, upper) = (
            sum(|part| part.rate),
            sum(|part| part.lower),
            sum(|part| part.upper),
        );
        let outage = sum(|part| part.clusters * part.serving.map_or(0.0, |serving| serving.outage));
        Estimate {
            rate,
            lower,
            upper,
            relative_error: (0.0 < rate).then(|| (upper - lower) / 2.0 / rate),
            runs: parts.iter().map(|part| part.runs).sum(),
            availability: 1.0 - outage / seconds(deployment.horizon),
            quiet: quiet.compared_with(quiet),
            strata: parts,
        }
    }

    /// Returns whether the bounds are as narrow as asked for.
    #[must_use]
    pub fn is_within(&self, relative_error: f64) -> bool {
        self.relative_error
            .is_some_and(|error| error <= relative_error)
    }
}
