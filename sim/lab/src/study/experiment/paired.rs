//! Two locks on the same seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use statrs::function::beta::beta_reg;

use super::file::Experiment;
use super::outcome::Outcome;

/// Two locks on the same seeds: how many seeds broke one of them and not the other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Paired {
    /// The index of the point, or `None` for the sum of all points.
    pub point: Option<usize>,
    /// The index of the first lock.
    pub one: usize,
    /// The index of the second lock.
    pub other: usize,
    /// The number of seeds that both were run with.
    pub seeds: u64,
    /// How many broke the first lock only. For all points together: how many broke it at more points than the second. Each seed counts
    /// once there, because the runs of one seed at several points are not independent.
    pub only_one: u64,
    /// How many broke the second lock only, or at more points than the first.
    pub only_other: u64,
    /// The probability of a difference as large or larger if both locks break equally often: the exact test of McNemar.
    pub p: f64,
}

/// Compares each two locks at each point, and over all points together.
#[must_use]
pub fn compare(study: &Experiment, outcomes: &[Outcome]) -> Vec<Paired> {
    let locks = study.locks.len();
    let pairs = (0..locks).flat_map(|one| (one + 1..locks).map(move |other| (one, other)));
    pairs
        .flat_map(|(one, other)| {
            let of = |point, lock| {
                let mut all = outcomes.iter();
                all.find(|outcome| (outcome.point, outcome.lock) == (point, lock))
            };
            let points = (0..study.points.len()).filter_map(|point| {
                let (first, second) = of(point, one).zip(of(point, other))?;
                Some((point, first, second))
            });
            let mut leads = BTreeMap::new();
            let mut pairs = Vec::new();
            for (point, first, second) in points {
                pairs.push(at_point(point, first, second, &mut leads));
            }
            if 1 < pairs.len() {
                let seeds = pairs.iter().map(|pair| pair.seeds).max();
                let count = |is: fn(&i64) -> bool| leads.values().filter(|lead| is(lead)).count();
                let discordant = (count(|lead| 0 < *lead), count(|lead| *lead < 0));
                let discordant = (discordant.0 as u64, discordant.1 as u64);
                let seeds = seeds.unwrap_or(0);
                pairs.push(Paired::new(None, (one, other), seeds, discordant));
            }
            pairs
        })
        .collect()
}

/// Compares two locks at a point, on the seeds that both were run with. `leads` counts for each seed at how many points more it broke
/// the first lock than the second.
fn at_point(
    point: usize,
    one: &Outcome,
    other: &Outcome,
    leads: &mut BTreeMap<u64, i64>,
) -> Paired {
    let last = one.last_seed().min(other.last_seed());
    let broken = |outcome: &Outcome| {
        let seeds = outcome.broken.iter().map(|(seed, _)| *seed);
        seeds
            .filter(|seed| Some(*seed) <= last)
            .collect::<BTreeSet<u64>>()
    };
    let (first, second) = (broken(one), broken(other));
    let seeds = one.tally.runs.min(other.tally.runs);
    let only = |these: &BTreeSet<u64>, those| these.difference(those).count() as u64;
    let discordant = (only(&first, &second), only(&second, &first));
    for seed in first.difference(&second) {
        *leads.entry(*seed).or_insert(0) += 1;
    }
    for seed in second.difference(&first) {
        *leads.entry(*seed).or_insert(0) -= 1;
    }
    Paired::new(Some(point), (one.lock, other.lock), seeds, discordant)
}

impl Paired {
    fn new(
        point: Option<usize>,
        (one, other): (usize, usize),
        seeds: u64,
        (only_one, only_other): (u64, u64),
    ) -> Self {
        Paired {
            point,
            one,
            other,
            seeds,
            only_one,
            only_other,
            p: mcnemar(only_one, only_other),
        }
    }
}

/// Returns the two-sided exact p-value of McNemar's test. If both break equally often, each seed that breaks only one of them
/// breaks either with the probability 1/2. Source: Q. McNemar, "Note on the sampling error of the difference between
/// correlated proportions or percentages", Psychometrika 12 (1947), with the binomial in place of its approximation.
fn mcnemar(one: u64, other: u64) -> f64 {
    let (fewer, all) = (one.min(other), one + other);
    if 2 * fewer == all {
        return 1.0;
    }
    // The probability of at most `fewer` of `all`, which is a regularized incomplete beta function.
    let tail = beta_reg((all - fewer) as f64, fewer as f64 + 1.0, 0.5);
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_binomial() {
        // Of R: binom.test(b, b + c)$p.value.
        for (one, other, p) in [
            (0, 0, 1.0),
            (5, 5, 1.0),
            (1, 0, 1.0),
            (6, 0, 0.031_25),
            (2, 10, 0.038_574_218_75),
            (10, 2, 0.038_574_218_75),
        ] {
            let found = mcnemar(one, other);
            assert!((found - p).abs() < 1e-12, "{one}, {other}: {found}");
        }
        // With none of the one, there is a closed form, also where it is very small.
        let (found, exact) = (mcnemar(0, 500), 2.0 * libm::pow(0.5, 500.0));
        assert!((found / exact - 1.0).abs() < 1e-9, "{found}, {exact}");
    }
}
