//! Measurements that reproduce published numbers.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use quorlock_sim_check::run::Run;
use quorlock_sim_world::history::{Accepted, History, HoldId, NameId};

/// A measurement, with the published result.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The quantity that is measured.
    pub of: Measure,
    /// The published share, in percent.
    pub published: u64,
    /// The smallest acceptable share, in percent.
    pub min: u64,
    /// The largest acceptable share, in percent.
    pub max: u64,
}

/// A share of the acknowledged operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The share of updates that are lost. An update reads a set when its client enters the section, adds one element,
    /// and writes the whole set before the client leaves. It is lost if its element is not in the final set.
    LostUpdates,
    /// The share of grants that are unknown to the node that remains at the end. The token counter of that node equals
    /// the number of grants that it knows. This requires tokens that are counted from one.
    LostGrants,
}

/// A measured fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Measured {
    /// The number of acknowledged operations that were lost.
    pub lost: u64,
    /// The number of acknowledged operations.
    pub acknowledged: u64,
}

/// A share with its 95 % confidence interval (Wilson score interval).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// The measured share.
    pub share: f64,
    /// The lower bound.
    pub min: f64,
    /// The upper bound.
    pub max: f64,
}

impl Interval {
    /// Computes the share of `some` in `all`, with its interval.
    #[must_use]
    pub fn of(some: u64, all: u64) -> Self {
        if all == 0 {
            return Interval {
                share: 0.0,
                min: 0.0,
                max: 1.0,
            };
        }
        let z = 1.959_963_984_540_054_f64;
        let (n, share) = (all as f64, some as f64 / all as f64);
        let middle = share + z * z / (2.0 * n);
        let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        Interval {
            share,
            min: ((middle - reach) / scale).max(0.0),
            max: ((middle + reach) / scale).min(1.0),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} % (95 %: {:.1} to {:.1} %)",
            self.share * 100.0,
            self.min * 100.0,
            self.max * 100.0
        )
    }
}

impl Figure {
    /// Returns the reason why the measurement is not acceptable, if it is not.
    pub(super) fn wrong(&self, measured: &Measured) -> Option<String> {
        let interval = Interval::of(measured.lost, measured.acknowledged);
        let percent = interval.share * 100.0;
        let is_right = (self.min as f64..=self.max as f64).contains(&percent);
        (!is_right).then(|| {
            format!(
                "{interval} lost, which is not between {} and {} %",
                self.min, self.max
            )
        })
    }
}

impl Measure {
    /// Adds the counts of one run.
    pub(super) fn count(self, run: &Run, measured: &mut Measured) {
        let (lost, acknowledged) = match self {
            Measure::LostUpdates => lost_updates(&run.history),
            Measure::LostGrants => lost_grants(&run.history),
        };
        measured.lost += lost;
        measured.acknowledged += acknowledged;
    }
}

enum SectionStep {
    Read(HoldId),
    Write(HoldId),
}

fn lost_updates(history: &History) -> (u64, u64) {
    let reads = history.sections.iter();
    let reads = reads.map(|s| (s.entered, s.name, SectionStep::Read(s.hold)));
    let taken = history.writes.iter();
    let taken = taken.filter(|write| write.accepted == Accepted::Yes);
    let writes = taken.map(|w| (w.at, w.name, SectionStep::Write(w.hold)));
    let mut steps: Vec<(u64, NameId, SectionStep)> = reads.chain(writes).collect();
    steps.sort_by_key(|(at, name, _)| (*name, *at));
    let (mut lost, mut acknowledged) = (0, 0);
    let mut rest = steps.as_slice();
    while let Some((_, name, _)) = rest.first() {
        let of_name = rest.iter().take_while(|(_, other, _)| other == name);
        let (one, others) = rest.split_at(of_name.count());
        rest = others;
        // What each hold has read, and the current content of the set.
        let mut read: Vec<(HoldId, BTreeSet<HoldId>)> = Vec::new();
        let mut set: BTreeSet<HoldId> = BTreeSet::new();
        let mut written: BTreeSet<HoldId> = BTreeSet::new();
        for (_, _, step) in one {
            match step {
                SectionStep::Read(hold) => read.push((*hold, set.clone())),
                SectionStep::Write(hold) => {
                    let place = read.iter().position(|(reader, _)| reader == hold);
                    if let Some(place) = place {
                        set = read.swap_remove(place).1;
                    }
                    set.insert(*hold);
                    written.insert(*hold);
                }
            }
        }
        acknowledged += written.len() as u64;
        lost += written.difference(&set).count() as u64;
    }
    (lost, acknowledged)
}

fn lost_grants(history: &History) -> (u64, u64) {
    let names = (0..history.names.len()).filter_map(|name| u16::try_from(name).ok());
    let mut total = (0, 0);
    for name in names.map(NameId) {
        let mut grants = history.grants.iter().filter(|grant| grant.name == name);
        let won = grants.clone().count() as u64;
        let known = grants.next_back().map_or(0, |last| last.token);
        total.0 += won.saturating_sub(known);
        total.1 += won;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorlock_sim_check::samples::{believed, granted, history, written};

    #[test]
    fn intervals_are_those_of_wilson() {
        // Computed by hand: 8 of 10.
        let interval = Interval::of(8, 10);
        assert!((interval.min - 0.4902).abs() < 1e-4, "{interval:?}");
        assert!((interval.max - 0.9433).abs() < 1e-4, "{interval:?}");
        let none = Interval::of(0, 100);
        assert!(none.min < 1e-9, "{none:?}");
        assert!((none.max - 0.0370).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn an_update_that_is_written_over_by_one_that_had_not_read_it_is_lost() {
        // Hold 0 reads at 0 and writes at 30; hold 1 reads at 10 and writes at 20; hold 2 follows both.
        let mut history = history(vec![
            believed(0, 0, 0, 30),
            believed(1, 1, 10, 20),
            believed(2, 2, 40, 50),
        ]);
        history.writes = vec![
            written(1, 20, None),
            written(0, 30, None),
            written(2, 50, None),
        ];
        assert_eq!(lost_updates(&history), (1, 3));
        // If they do not overlap, nothing is lost.
        history.sections[0].entered = 25;
        assert_eq!(lost_updates(&history), (0, 3));
    }

    #[test]
    fn grants_that_the_last_counter_does_not_know_are_lost() {
        let mut history = history(Vec::new());
        history.grants = vec![
            granted(0, 0, 1, 1),
            granted(1, 2, 3, 2),
            granted(2, 4, 5, 2),
        ];
        assert_eq!(lost_grants(&history), (1, 3));
    }
}
