//! Measurements that are made of each run.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::service::Service;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::{Accepted, History, HoldId, NameId};

/// What is measured of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The share of updates that are lost. An update reads a set when its client enters the section, adds one element,
    /// and writes the whole set before the client leaves. It is lost if its element is not in the final set.
    LostUpdates,
    /// The share of grants that are unknown to the node that remains at the end. The token counter of that node equals
    /// the number of grants that it knows. This requires tokens that are counted from one.
    LostGrants,
    /// How the lock served its clients from the first fault after this time. Files do not ask for it.
    #[serde(skip)]
    Service(SimTime),
}

/// A measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measured {
    /// A share of the acknowledged operations.
    Lost(Lost),
    /// How the lock served its clients.
    Service(Service),
}

/// A share of the acknowledged operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// The number of acknowledged operations that were lost.
    pub lost: u64,
    /// The number of acknowledged operations.
    pub acknowledged: u64,
}

impl Measure {
    /// Measures one run.
    #[must_use]
    pub fn of(self, run: &Run) -> Measured {
        let (lost, acknowledged) = match self {
            Measure::LostUpdates => lost_updates(&run.history),
            Measure::LostGrants => lost_grants(&run.history),
            Measure::Service(after) => return Measured::Service(Service::of(run, after)),
        };
        Measured::Lost(Lost { lost, acknowledged })
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
