//! Clusters of strikes, by which strikes they have, and how many of them a horizon has.

use super::deployment::Deployment;
use super::process::{Process, seconds};

/// One kind of strike: a process that strikes one target, or all of them at the same instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Strike {
    /// The index of the process.
    pub(super) process: usize,
    /// What is struck.
    pub(super) reach: Reach,
    /// How many of them happen in a second, all targets together, that are not too long.
    pub(super) per_second: f64,
}

/// What a strike hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// One target, each with the same probability.
    One,
    /// All targets at the same instant.
    All,
}

/// The clusters that have the same strikes, whatever their order.
#[derive(Clone, PartialEq, Debug)]
pub struct Stratum {
    /// What strikes, in words.
    pub name: String,
    /// How many times each kind of strike happens.
    pub(super) counts: Vec<usize>,
    /// The expected number of these clusters in the horizon.
    pub per_horizon: f64,
}

/// All clusters of a deployment.
#[derive(Clone, PartialEq, Debug)]
pub struct Strata {
    /// The kinds of strike that happen.
    pub(super) strikes: Vec<Strike>,
    /// The clusters of up to the largest number of strikes.
    pub all: Vec<Stratum>,
    /// The expected number of larger clusters in the horizon.
    pub larger: f64,
    /// The expected number of strikes in the horizon that last too long to be run.
    pub too_long: f64,
    /// How many strikes happen in a second, without those that are too long.
    pub(super) per_second: f64,
}

impl Strata {
    /// Returns the clusters of a deployment, with their exact expected numbers. The module has the formulas.
    #[must_use]
    pub fn of(deployment: &Deployment) -> Self {
        let strikes: Vec<Strike> = strikes(deployment).collect();
        let rate: f64 = strikes.iter().map(|strike| strike.per_second).sum();
        let horizon = seconds(deployment.horizon);
        let in_window = rate * seconds(deployment.window);
        let (alone, joined) = (libm::exp(-in_window), -libm::expm1(-in_window));
        let of_size = |size: usize| {
            let joins = libm::pow(joined, size.saturating_sub(1) as f64);
            horizon * rate * alone * alone * joins
        };
        let mut all = Vec::new();
        for size in 1..=deployment.largest {
            for counts in multisets(strikes.len(), size) {
                let share = multinomial(&counts, &strikes, rate);
                all.push(Stratum {
                    name: name(deployment, &strikes, &counts),
                    per_horizon: of_size(size) * share,
                    counts,
                });
            }
        }
        let too_long = deployment.processes.iter().map(|process| {
            let beyond = process.length.share_beyond(deployment.longest);
            horizon * process.all_per_second(deployment) * beyond
        });
        Strata {
            larger: horizon * rate * alone * libm::pow(joined, deployment.largest as f64),
            too_long: too_long.sum(),
            per_second: rate,
            strikes,
            all,
        }
    }
}

/// Returns the kinds of strike with a rate above zero.
fn strikes(deployment: &Deployment) -> impl Iterator<Item = Strike> {
    let processes = deployment.processes.iter().enumerate();
    let strikes = processes.flat_map(|(index, process)| {
        let (one, all) = process.rates(deployment);
        let kept = 1.0 - process.length.share_beyond(deployment.longest);
        [(Reach::One, one), (Reach::All, all)].map(|(reach, rate)| Strike {
            process: index,
            reach,
            per_second: rate * kept,
        })
    });
    strikes.filter(|strike| 0.0 < strike.per_second)
}

impl Process {
    /// Returns how many strikes hit one target and how many hit all in a second, all targets together. Each target is hit at
    /// the rate of the process: a share of its strikes is common to all.
    fn rates(&self, deployment: &Deployment) -> (f64, f64) {
        let targets = f64::from(self.targets(&deployment.plan));
        let common = self.common * self.per_second;
        (targets * (self.per_second - common), common)
    }

    fn all_per_second(&self, deployment: &Deployment) -> f64 {
        let (one, all) = self.rates(deployment);
        one + all
    }
}

/// Returns the probability that strikes whose kinds are independent are these.
fn multinomial(counts: &[usize], strikes: &[Strike], rate: f64) -> f64 {
    let mut placed = 0;
    let mut share = 1.0;
    for (count, strike) in counts.iter().zip(strikes) {
        for nth in 1..=*count {
            placed += 1;
            share *= f64::from(placed) / nth as f64 * strike.per_second / rate;
        }
    }
    share
}

/// Returns all ways to choose `size` of `kinds`, with repetition: how many of each.
fn multisets(kinds: usize, size: usize) -> Vec<Vec<usize>> {
    let Some(rest) = kinds.checked_sub(1) else {
        return if size == 0 {
            vec![Vec::new()]
        } else {
            Vec::new()
        };
    };
    let with = |first: usize| {
        let others = multisets(rest, size - first).into_iter();
        others.map(move |others| [vec![first], others].concat())
    };
    (0..=size).rev().flat_map(with).collect()
}

fn name(deployment: &Deployment, strikes: &[Strike], counts: &[usize]) -> String {
    let words = strikes.iter().zip(counts).filter_map(|(strike, count)| {
        let process = deployment.processes.get(strike.process)?;
        let reach = match strike.reach {
            Reach::All => " of all",
            Reach::One => "",
        };
        match count {
            0 => None,
            1 => Some(format!("{}{reach}", process.name)),
            _ => Some(format!("{count} x {}{reach}", process.name)),
        }
    });
    words.collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(processes: &str) -> Deployment {
        let text = format!("horizon = \"1y\"\n[plan]\n{processes}");
        Deployment::parse("x.toml".as_ref(), &text).unwrap()
    }

    const TWO: &str = "[[process]]\nkind = \"crash-node\"\neach = \"node\"\nrate = \"1/h\"\ncommon = 0.1\nrestart_after = \"5s\"\n\
                       [[process]]\nkind = \"pause-client\"\neach = \"client\"\nrate = \"2/h\"\nlasts = \"pareto(50ms, 1.1)\"\n";

    /// Every strike is in one cluster, or too long: the expected number of strikes of the strata is that of the law.
    #[test]
    fn the_strikes_of_all_clusters_are_those_of_the_law() {
        let mut deployment = deployment(TWO);
        deployment.largest = 16;
        let strata = Strata::of(&deployment);
        let in_strata = strata.all.iter().map(|stratum| {
            let size: usize = stratum.counts.iter().sum();
            stratum.per_horizon * size as f64
        });
        // 5 nodes of which a tenth strikes all at once, and 3 clients, in 8760 hours.
        let expected = 8_760.0 * (5.0 * 0.9 + 0.1 + 3.0 * 2.0) - strata.too_long;
        let sum: f64 = in_strata.sum();
        assert!((sum / expected - 1.0).abs() < 1e-6, "{sum}, {expected}");
        assert!(0.0 < strata.too_long && strata.too_long < 1_000.0);
    }

    #[test]
    fn what_is_not_in_a_stratum_is_among_the_larger_clusters() {
        let mut deployment = deployment(TWO);
        let clusters = |strata: &Strata| {
            let all = strata.all.iter().map(|stratum| stratum.per_horizon);
            all.sum::<f64>() + strata.larger
        };
        let all = [1, 2, 5].map(|largest| {
            deployment.largest = largest;
            clusters(&Strata::of(&deployment))
        });
        for other in &all[1..] {
            assert!((other / all[0] - 1.0).abs() < 1e-12, "{all:?}");
        }
    }

    /// The clusters of simulated strikes are as many as the formula says.
    #[test]
    fn clusters_that_are_counted_are_as_many_as_expected() {
        use crate::study::rate::length::unit;
        use quorlock_sim_plan::draw::{Draw, Purpose};
        let deployment = deployment(TWO);
        let strata = Strata::of(&deployment);
        let window = seconds(deployment.window);
        let mut draw = Draw::new(3, Purpose::Strikes, 0);
        let strikes = 200_000;
        let mut sizes = [0u32; 3];
        let mut size = 0;
        for _ in 0..strikes {
            size += 1;
            if window <= -libm::log(1.0 - unit(&mut draw)) / strata.per_second {
                if let Some(count) = sizes.get_mut(size - 1) {
                    *count += 1;
                }
                size = 0;
            }
        }
        let per_strike = 1.0 / (strata.per_second * seconds(deployment.horizon));
        for (size, count) in (1..).zip(sizes) {
            let of_size = strata
                .all
                .iter()
                .filter(|s| s.counts.iter().sum::<usize>() == size);
            let expected: f64 = of_size.map(|s| s.per_horizon * per_strike).sum();
            let found = f64::from(count) / f64::from(strikes);
            let spread = 5.0 * (expected / f64::from(strikes)).sqrt();
            assert!(
                (found - expected).abs() < spread,
                "{size}: {found}, {expected}"
            );
        }
    }

    #[test]
    fn names_say_what_strikes() {
        let strata = Strata::of(&deployment(TWO));
        let names: Vec<&str> = strata
            .all
            .iter()
            .map(|stratum| stratum.name.as_str())
            .collect();
        let first = [
            "crash-node",
            "crash-node of all",
            "pause-client",
            "2 x crash-node",
        ];
        assert_eq!(names[..4], first);
        assert!(names.contains(&"crash-node + pause-client"));
        assert_eq!(names.len(), 3 + 6 + 10);
    }
}
