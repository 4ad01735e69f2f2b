//! Runs a case and compares its result with the expected verdict.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{Case, Expect};
use crate::simulation::run;
use crate::study::interval::Interval;
use crate::study::measure::{Lost, Measured};
use crate::study::results::Row;
use crate::study::runs::Cell;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::{Lacks, Lane, Plan};

/// Whether the result of a case is as expected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseVerdict {
    /// The result is as expected.
    AsExpected,
    /// A property was broken that should hold.
    Broken(Property),
    /// No run broke the property that should be broken.
    NotFound(Property),
    /// Too little happened to show anything.
    Vacuous(String),
    /// A measured number does not agree with the published one.
    OtherFigure(String),
    /// The case was not run, because its lane does not support a part of its plan.
    NotInLane(String),
    /// The runs neither showed what the case needs nor anything wrong, but there were fewer seeds than the case needs.
    TooFewSeeds {
        /// The number of seeds in its file.
        needs: u64,
        /// The number of seeds that were run.
        given: u64,
    },
}

/// The result of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// Whether the result is as expected.
    pub verdict: CaseVerdict,
    /// The number of runs.
    pub runs: u64,
    /// For each property that was broken, the number of runs that broke it.
    pub broken: BTreeMap<Property, u64>,
    /// The first seed that broke the expected property, or any property if none was expected.
    pub first: Option<u64>,
    /// The number of holds that were won.
    pub grants: u64,
    /// The number of acquires that were refused because of another owner's claim.
    pub refusals: u64,
    /// The measurement, if the case has one.
    pub measured: Option<Lost>,
}

/// The number of seeds of a case that are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Depth {
    /// Seeds are run until an expected break is found.
    UntilFound,
    /// All seeds are run, to measure how often the property breaks.
    AllSeeds,
}

impl Judged {
    /// Returns the share of runs that broke a property, with its interval.
    #[must_use]
    pub fn rate(&self, property: Property) -> Interval {
        let broken = self.broken.get(&property).copied().unwrap_or(0);
        Interval::of(broken, self.runs)
    }
}

/// The result of a case while its rows come in.
#[derive(Debug)]
pub struct Judging<'a> {
    case: &'a Case,
    /// The number of seeds that are run, if it is smaller than that of the case.
    most: u64,
    judged: Judged,
    /// How often each fault had an effect.
    effects: Vec<u64>,
    /// The first seed that showed the expected break.
    found: Option<u64>,
    /// The first seed that broke another property, and the property.
    unexpected: Option<(u64, Property)>,
}

impl<'a> Judging<'a> {
    /// Begins with no rows, of at most this number of seeds.
    #[must_use]
    pub fn new(case: &'a Case, most: u64) -> Self {
        Judging {
            case,
            most,
            judged: Judged {
                verdict: CaseVerdict::AsExpected,
                runs: 0,
                broken: BTreeMap::new(),
                first: None,
                grants: 0,
                refusals: 0,
                measured: case.figure.as_ref().map(|_| Lost::default()),
            },
            effects: Vec::new(),
            found: None,
            unexpected: None,
        }
    }

    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        let judged = &mut self.judged;
        judged.runs += 1;
        judged.grants += u64::from(row.holds);
        judged.refusals += row.refused;
        if let (Some(all), Some(Measured::Lost(one))) = (&mut judged.measured, row.measured) {
            all.lost += one.lost;
            all.acknowledged += one.acknowledged;
        }
        for property in row.violated.keys() {
            *judged.broken.entry(*property).or_default() += 1;
        }
        self.effects.resize(row.effects.len(), 0);
        for (all, effects) in self.effects.iter_mut().zip(&row.effects) {
            *all += u64::from(effects.count);
        }
        let found = self.case.expect.is_found(row).then_some(row.seed);
        self.found = self.found.into_iter().chain(found).min();
        let unexpected = self.case.expect.unexpected(row);
        let unexpected = unexpected.map(|property| (row.seed, property));
        self.unexpected = self.unexpected.into_iter().chain(unexpected).min();
    }

    /// Returns the result of the rows that were added. A break that only later seeds would show counts neither as found
    /// nor as missed.
    #[must_use]
    pub fn end(mut self) -> Judged {
        let verdict = match self.case.left_out() {
            Some(why) => CaseVerdict::NotInLane(why),
            None => self.verdict(),
        };
        // A break that was not expected is worth more than the one that was.
        let unexpected = self.unexpected.map(|(seed, _)| seed);
        self.judged.first = unexpected.or(self.found);
        let is_short = self.most < self.case.seeds;
        self.judged.verdict = match verdict {
            CaseVerdict::NotFound(_) | CaseVerdict::Vacuous(_) | CaseVerdict::OtherFigure(_)
                if is_short =>
            {
                CaseVerdict::TooFewSeeds {
                    needs: self.case.seeds,
                    given: self.most,
                }
            }
            shown => shown,
        };
        self.judged
    }

    fn verdict(&self) -> CaseVerdict {
        if let Some((_, property)) = self.unexpected {
            return CaseVerdict::Broken(property);
        }
        // A break that was found proves that enough happened.
        let is_found = self.found.is_some();
        if !is_found && let Some(why) = self.vacuity() {
            return CaseVerdict::Vacuous(why);
        }
        if let Some(property) = self.case.expect.property().filter(|_| !is_found) {
            return CaseVerdict::NotFound(property);
        }
        let figures = self.case.figure.as_ref().zip(self.judged.measured.as_ref());
        match figures.and_then(|(figure, measured)| figure.wrong(measured)) {
            Some(why) => CaseVerdict::OtherFigure(why),
            None => CaseVerdict::AsExpected,
        }
    }

    fn vacuity(&self) -> Option<String> {
        let (judged, min) = (&self.judged, self.case.min);
        if judged.grants < min.grants {
            let min = min.grants;
            return Some(format!("{} holds, at least {min} wanted", judged.grants));
        }
        if judged.refusals < min.refusals {
            let (found, min) = (judged.refusals, min.refusals);
            return Some(format!("{found} refusals, at least {min} wanted"));
        }
        let faults = Rc::new(self.case.plan.clone()).spelled_out();
        let mut effects = faults.faults.iter().zip(&self.effects);
        let idle = effects.find(|(_, effects)| **effects == 0);
        idle.map(|(fault, _)| format!("never had an effect: {fault}, {}", fault.when))
    }
}

impl Case {
    /// Runs the case, one seed after the other.
    #[must_use]
    pub fn judge(&self, depth: Depth) -> Judged {
        let mut judging = Judging::new(self, self.seeds);
        let cell = self.cell(String::new(), depth, self.seeds);
        for seed in cell.seeds {
            let run = run(&Rc::new((cell.plan)(seed)));
            let row = Row::of(&cell.name, &run, cell.measure);
            judging.add(&row);
            if cell.is_last.as_ref().is_some_and(|is_last| is_last(&row)) {
                break;
            }
        }
        judging.end()
    }

    /// Returns the plans of the case, of at most this number of seeds. It has no seed if it cannot be run in its lane.
    #[must_use]
    pub fn cell(&self, name: String, depth: Depth, most: u64) -> Cell<'_> {
        let is_until_found = depth == Depth::UntilFound && self.figure.is_none();
        let seeds = match self.left_out() {
            Some(_) => 0,
            None => self.seeds.min(most),
        };
        Cell {
            name,
            seeds: 0..seeds,
            plan: Box::new(|seed| Plan {
                seed,
                ..self.plan.clone()
            }),
            measure: self.figure.as_ref().map(|figure| figure.of),
            is_last: Some(Box::new(move |row| {
                self.expect.unexpected(row).is_some() || is_until_found && self.expect.is_found(row)
            })),
        }
    }

    /// Returns the reason why the case cannot be run in its lane, if there is one.
    fn left_out(&self) -> Option<String> {
        let lacks = Lacks::check(&self.plan).err();
        let fast_only = self.fast_only.clone();
        let lacks = lacks.map(|lacks| lacks.to_string());
        lacks.or(fast_only.filter(|_| self.plan.lane != Lane::Fast))
    }
}

impl Expect {
    /// Returns the property that the case breaks.
    #[must_use]
    pub fn property(&self) -> Option<Property> {
        match self {
            Expect::Holds => None,
            Expect::Breaks(property, _) => Some(*property),
        }
    }

    /// Returns whether a row shows the expected break.
    fn is_found(&self, row: &Row) -> bool {
        let expected = self.property();
        expected.is_some_and(|property| row.violated.contains_key(&property))
    }

    /// Returns a property that a row breaks and that may not be broken.
    fn unexpected(&self, row: &Row) -> Option<Property> {
        let mut broken = Property::ALL
            .into_iter()
            .filter(|property| row.violated.contains_key(property));
        broken.find(|property| !self.allows(*property))
    }

    /// Returns whether a property may be broken.
    fn allows(&self, property: Property) -> bool {
        match self {
            Expect::Holds => false,
            Expect::Breaks(expected, beside) => *expected == property || beside.contains(&property),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::scenario::Least;
    use quorlock_sim_plan::fault::{Fault, NodeFault};
    use quorlock_sim_plan::time::SimTime;
    use quorlock_sim_plan::{LockKind, WorkloadKind};

    fn case(expect: Expect) -> Case {
        Case {
            name: String::new(),
            expect,
            reason: String::new(),
            fast_only: None,
            seeds: 5,
            min: Least::default(),
            figure: None,
            plan: Plan {
                lock: LockKind::Single,
                duration: SimTime::millis(500),
                ..Plan::default()
            },
        }
    }

    fn flushed() -> Vec<Fault> {
        let at = |n: u64| SimTime::millis(100 + 7 * n);
        let faults = (0..40).map(|n| Fault::of_node(at(n), 0, NodeFault::Flush));
        faults.collect()
    }

    #[test]
    fn what_holds_holds_and_a_break_that_is_not_found_is_told() {
        let holds = case(Expect::Holds).judge(Depth::UntilFound);
        assert_eq!(holds.verdict, CaseVerdict::AsExpected);
        assert_eq!(holds.runs, 5);
        let breaks = Expect::Breaks(Property::Exclusion, vec![]);
        let missed = case(breaks).judge(Depth::UntilFound);
        assert_eq!(missed.verdict, CaseVerdict::NotFound(Property::Exclusion));
    }

    #[test]
    fn a_break_is_found_if_expected_and_told_if_not() {
        let mut breaks = case(Expect::Breaks(Property::Exclusion, vec![]));
        breaks.plan.faults = flushed();
        let judged = breaks.judge(Depth::UntilFound);
        assert_eq!(judged.verdict, CaseVerdict::AsExpected, "{judged:?}");
        assert!(judged.first.is_some());
        breaks.expect = Expect::Holds;
        let judged = breaks.judge(Depth::UntilFound);
        assert_eq!(judged.verdict, CaseVerdict::Broken(Property::Exclusion));
    }

    #[test]
    fn a_case_in_which_nothing_happens_is_vacuous() {
        let mut lonely = case(Expect::Holds);
        lonely.plan.clients = 1;
        let judged = lonely.judge(Depth::UntilFound);
        assert!(
            matches!(judged.verdict, CaseVerdict::Vacuous(_)),
            "{judged:?}"
        );
        let mut idle = case(Expect::Holds);
        idle.plan.workload.kind = WorkloadKind::MutualExclusion;
        idle.plan.faults = vec![Fault::of_node(
            SimTime::ZERO,
            0,
            NodeFault::Evict { name: 0 },
        )];
        let judged = idle.judge(Depth::UntilFound);
        assert!(
            matches!(judged.verdict, CaseVerdict::Vacuous(_)),
            "{judged:?}"
        );
        // A lock on one node uses only the first node.
        let mut unused = case(Expect::Holds);
        let crash = Fault::of_node(SimTime::millis(100), 1, NodeFault::Crash);
        unused.plan.faults = vec![crash.lasting(SimTime::millis(50))];
        let judged = unused.judge(Depth::UntilFound);
        let told = "never had an effect: node 1 crashes and is started again after 50ms, 100ms";
        assert_eq!(judged.verdict, CaseVerdict::Vacuous(told.to_owned()));
    }
}
