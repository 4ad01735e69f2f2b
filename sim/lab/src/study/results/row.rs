//! The result of one run, as a line of JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::study::measure::{Measure, Measured};
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::property::Property;

/// The result of one run. It depends on nothing but the plan, so the same seed of a cell has the same row on every machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name of the cell: the plans that differ in the seed alone.
    pub cell: String,
    /// The seed.
    pub seed: u64,
    /// The verdict on the properties that the plan demands.
    pub verdict: RowVerdict,
    /// The property that was violated first, if the verdict is a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<Property>,
    /// When it was violated, in nanoseconds of true time since the beginning of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_violation: Option<u64>,
    /// All properties that the history breaks, whether or not the plan demands them, each with the time of its first
    /// violation in nanoseconds of true time since the beginning of the run.
    pub violated: BTreeMap<Property, u64>,
    /// The number of holds that were won.
    pub holds: u32,
    /// The number of requests that nodes executed.
    pub commands: u64,
    /// The number of acquires that were refused because of another owner's claim.
    pub refused: u64,
    /// The faults of the plan in their order, each with the number of its effects.
    pub effects: Vec<Effects>,
    /// A measurement, for cells that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The trace hash in hexadecimal. Two runs have the same hash only if they are the same, event for event.
    pub trace: String,
}

/// The verdict of a run, without its story.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// Every demanded property holds.
    Holds,
    /// A property is violated.
    Violated,
    /// No client acquired anything.
    Vacuous,
}

/// The number of effects of one fault, written as a pair: `["crash-node", 1]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "(String, u32)", into = "(String, u32)")]
pub struct Effects {
    /// The kind of the fault.
    pub kind: String,
    /// How many times the fault had an effect.
    pub count: u32,
}

impl From<(String, u32)> for Effects {
    fn from((kind, count): (String, u32)) -> Self {
        Effects { kind, count }
    }
}

impl From<Effects> for (String, u32) {
    fn from(effects: Effects) -> Self {
        (effects.kind, effects.count)
    }
}

impl Row {
    /// Creates the row of a run of a cell.
    #[must_use]
    pub fn of(cell: &str, run: &Run, measure: Option<Measure>) -> Self {
        let (verdict, violation) = match &run.verdict {
            Verdict::Holds => (RowVerdict::Holds, None),
            Verdict::Vacuous => (RowVerdict::Vacuous, None),
            Verdict::Violated(violation) => (RowVerdict::Violated, Some(violation)),
        };
        let faults = run.plan.faults.iter().zip(&run.effects);
        let effects = faults.map(|(fault, count)| Effects {
            kind: fault.kind().name().to_owned(),
            count: *count,
        });
        let violated = run.violated.iter();
        Row {
            cell: cell.to_owned(),
            seed: run.plan.seed,
            verdict,
            property: violation.map(|violation| violation.property),
            first_violation: violation.map(|violation| violation.at.as_nanos()),
            violated: violated.map(|(what, at)| (*what, at.as_nanos())).collect(),
            holds: run.history.holds,
            commands: run.counters.commands,
            refused: run.counters.refused,
            effects: effects.collect(),
            measured: measure.map(|measure| measure.of(run)),
            trace: format!("{:016x}", run.trace),
        }
    }

    /// Returns the row as a line of JSON, with its line feed.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("BUG: a row is JSON");
        line.push('\n');
        line
    }
}
