//! Checkers of the properties that a history must have, one property per file, and the story of a failure.
//!
//! A part of the crate `quorlock-sim`, without a promise of stability of its own.

pub mod determinism;
pub mod run;
#[doc(hidden)]
pub mod samples;
pub mod story;

mod exclusion;
mod expiry;
mod fairness;
mod fencing;
mod hand_over;
mod hold_count;
mod leadership;
mod orphans;
mod ownership;
mod progress;
mod read_write;
mod stated;
mod statements;
mod termination;
mod terms;
mod usage;
mod validity;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::progress::{Gap, gaps};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_world::history::{History, NameId, Process};

/// A violation of a property, found in a history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// The property that is broken.
    pub property: Property,
    /// When it was broken, in true time.
    pub at: SimTime,
    /// The processes that are involved, in the order of the story.
    pub processes: Vec<Process>,
    /// The name of the lock or of the stated property, if there is one.
    pub name: Option<String>,
    /// What happened, in one sentence.
    pub story: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} violated at {}: {}",
            self.property,
            moment(self.at.as_nanos()),
            self.story
        )
    }
}

impl Violation {
    fn new(property: Property, at: u64, history: &History, name: NameId, story: String) -> Self {
        Violation {
            property,
            at: SimTime::nanos(at),
            processes: Vec::new(),
            name: Some(history.text(name).to_owned()),
            story,
        }
    }

    fn by(mut self, processes: &[Process]) -> Self {
        self.processes = processes.to_vec();
        self
    }
}

/// Rounds a time to the microsecond, as stories show it.
fn moment(at: u64) -> SimTime {
    SimTime::nanos(at / 1_000 * 1_000)
}

/// Returns the first violation of the demanded properties in a history. Later violations may be consequences of it. A
/// violation of safety takes precedence over a violation of progress, because a run that broke both did something
/// wrong.
#[must_use]
pub fn check(history: &History, not_demanded: &[Property]) -> Option<Violation> {
    first(violations(history), not_demanded)
}

/// Returns the first violation of each property that a history breaks.
fn violations(history: &History) -> Vec<Violation> {
    let all = Property::ALL.into_iter();
    all.filter_map(|property| check_one(property, history))
        .collect()
}

/// Returns the violation that a run reports: of the demanded properties, those of safety first, the earliest one.
fn first(violations: Vec<Violation>, not_demanded: &[Property]) -> Option<Violation> {
    violations
        .into_iter()
        .filter(|violation| !not_demanded.contains(&violation.property))
        .min_by_key(|violation| (violation.property.is_liveness(), violation.at))
}

/// Returns the first violation of one property, if there is any.
#[must_use]
pub fn check_one(property: Property, history: &History) -> Option<Violation> {
    match property {
        Property::Termination => termination::check(history),
        Property::Always => stated::always(history),
        Property::Eventually => stated::eventually(history),
        Property::Exclusion => {
            exclusion::check(history).or_else(|| hand_over::adopted_twice(history))
        }
        Property::Usage => usage::check(history),
        Property::Fencing => fencing::check(history).or_else(|| hand_over::in_between(history)),
        Property::Ownership => ownership::check(history),
        Property::HoldCount => hold_count::check(history),
        Property::Progress => progress::check(history),
        Property::Orphans => orphans::check(history),
        Property::Fairness => fairness::check(history),
        Property::ReadWrite => read_write::check(history),
        Property::Statements => statements::check(history),
        Property::Leadership => leadership::check(history),
        Property::Terms => terms::check(history),
        Property::Expiry => expiry::check(history),
        Property::Validity => validity::check(history),
    }
}

/// Returns whether clients believed at the same time in two holds that exclude each other, for any kind of lock.
#[must_use]
pub fn overlaps(history: &History) -> bool {
    exclusion::check(history).is_some()
        || read_write::beside_a_writer(history).is_some()
        || leadership::check(history).is_some()
}

#[cfg(test)]
mod tests {
    use super::samples::{acquired, believed, granted, history};
    use super::*;
    use quorlock_sim_world::history::{Leftover, Outcome};

    #[test]
    fn of_several_violations_the_first_in_time_is_told_and_safety_before_progress() {
        // Two clients in "b" at 40, and two in "a" at 50; one token twice at 20; and a claim that is left.
        let mut sections = vec![
            believed(0, 0, 10, 60),
            believed(1, 1, 50, 60),
            believed(2, 2, 30, 60),
            believed(3, 3, 40, 60),
        ];
        for section in &mut sections[2..] {
            section.name = NameId(1);
        }
        let mut history = history(sections);
        history.leftovers.push(Leftover {
            node: 0,
            name: NameId(0),
        });
        let told = |history: &History| {
            let violation = check(history, &[]).unwrap();
            (violation.property, violation.at.as_nanos())
        };
        assert_eq!(told(&history), (Property::Exclusion, 40));
        history.grants = vec![granted(7, 0, 10, 5), granted(8, 0, 20, 5)];
        assert_eq!(told(&history), (Property::Fencing, 20));
        history.sections.clear();
        history.grants.clear();
        history.operations = vec![acquired(0, 1, Outcome::Ok)];
        assert_eq!(told(&history).0, Property::Orphans);
    }

    #[test]
    fn of_several_tokens_out_of_order_the_first_in_time_is_told() {
        let mut history = history(Vec::new());
        let mut early = [granted(0, 0, 10, 5), granted(1, 11, 12, 4)];
        for grant in &mut early {
            grant.name = NameId(1);
        }
        history.grants = early.to_vec();
        history.grants.push(granted(2, 20, 30, 9));
        history.grants.push(granted(3, 31, 40, 9));
        let violation = check_one(Property::Fencing, &history).unwrap();
        assert_eq!(violation.at.as_nanos(), 12);
    }
}
