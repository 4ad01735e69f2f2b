//! The sum of rows of one cell.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Row, RowVerdict};
use quorlock_sim_plan::property::Property;

/// The sum of rows of one cell. Its size is independent of the number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs in which no client acquired anything.
    pub vacuous: u64,
    /// The number of holds that were won.
    pub holds: u64,
    /// The number of requests that nodes executed.
    pub commands: u64,
    /// The number of acquires that were refused because of another owner's claim.
    pub refused: u64,
    /// For each property, the runs that broke it first of the demanded properties.
    pub failed: BTreeMap<Property, Count>,
    /// For each property, the runs whose history breaks it, whether or not the plan demands it.
    pub violated: BTreeMap<Property, Count>,
    /// The faults by their kind.
    pub faults: BTreeMap<String, FaultCount>,
}

/// A number of runs, which is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The number of runs.
    pub runs: u64,
    /// The smallest of their seeds.
    pub first_seed: u64,
}

/// The faults of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultCount {
    /// The number of faults.
    pub drawn: u64,
    /// The number of those that had an effect.
    pub effective: u64,
    /// The number of their effects.
    pub effects: u64,
}

/// The sums of the rows of all cells, by the index of the cell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tallies(pub Vec<Tally>);

impl Tallies {
    /// Creates the sums of no rows of this number of cells.
    #[must_use]
    pub fn new(cells: usize) -> Self {
        Tallies(vec![Tally::default(); cells])
    }

    /// Adds a row of a cell.
    pub fn add(&mut self, cell: usize, row: &Row) {
        if let Some(tally) = self.0.get_mut(cell) {
            tally.add(row);
        }
    }
}

impl Tally {
    /// Adds the row of one run.
    pub fn add(&mut self, row: &Row) {
        self.runs += 1;
        self.vacuous += u64::from(row.verdict == RowVerdict::Vacuous);
        self.holds += u64::from(row.holds);
        self.commands += row.commands;
        self.refused += row.refused;
        for effects in &row.effects {
            let entry = self.faults.entry(effects.kind.clone()).or_default();
            entry.drawn += 1;
            entry.effective += u64::from(0 < effects.count);
            entry.effects += u64::from(effects.count);
        }
        if let Some(property) = row.property {
            count(&mut self.failed, property, row.seed);
        }
        for property in row.violated.keys() {
            count(&mut self.violated, *property, row.seed);
        }
    }

    /// Returns how often a property was broken, whether or not the plans demand it.
    #[must_use]
    pub fn broken(&self, property: Property) -> u64 {
        self.violated.get(&property).map_or(0, |count| count.runs)
    }

    /// Returns the smallest seed that broke a property, whether or not the plans demand it.
    #[must_use]
    pub fn first_seed(&self, property: Property) -> Option<u64> {
        self.violated.get(&property).map(|count| count.first_seed)
    }

    /// Returns the number of effects of all faults.
    #[must_use]
    pub fn effects(&self) -> u64 {
        self.faults.values().map(|fault| fault.effects).sum()
    }
}

fn count(counts: &mut BTreeMap<Property, Count>, property: Property, seed: u64) {
    let new = Count {
        runs: 0,
        first_seed: seed,
    };
    let count = counts.entry(property).or_insert(new);
    count.runs += 1;
    count.first_seed = count.first_seed.min(seed);
}
