//! Runs a case and compares its result with the expected verdict.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::figure::{Interval, Measured};
use super::{Case, Expect};
use crate::simulation::run;
use quorlock_sim_check::check_one;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::fault::Fault;
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::{Lacks, Lane};

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
    pub measured: Option<Measured>,
}

/// The number of seeds of a case that are run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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

impl Case {
    /// Runs the case with at most this many seeds. A break that only later seeds would show counts neither as found
    /// nor as missed.
    #[must_use]
    pub fn judge_within(&self, depth: Depth, max: u64) -> Judged {
        if self.seeds <= max {
            return self.judge(depth);
        }
        let shortened = Case {
            seeds: max,
            ..self.clone()
        };
        let mut judged = shortened.judge(depth);
        judged.verdict = match judged.verdict {
            CaseVerdict::NotFound(_) | CaseVerdict::Vacuous(_) | CaseVerdict::OtherFigure(_) => {
                CaseVerdict::TooFewSeeds {
                    needs: self.seeds,
                    given: max,
                }
            }
            shown => shown,
        };
        judged
    }

    /// Runs the case.
    #[must_use]
    pub fn judge(&self, depth: Depth) -> Judged {
        let mut judged = Judged {
            verdict: CaseVerdict::AsExpected,
            runs: 0,
            broken: BTreeMap::new(),
            first: None,
            grants: 0,
            refusals: 0,
            measured: self.figure.as_ref().map(|_| Measured::default()),
        };
        let lacks = Lacks::check(&self.plan)
            .err()
            .map(|lacks| lacks.to_string());
        let fast_only = self.fast_only.clone();
        if let Some(why) = lacks.or(fast_only.filter(|_| self.plan.lane != Lane::Fast)) {
            judged.verdict = CaseVerdict::NotInLane(why);
            return judged;
        }
        let faults = Rc::new(self.plan.clone()).spelled_out().faults.clone();
        let mut effects = vec![0u64; faults.len()];
        let mut unexpected = None;
        for seed in 0..self.seeds {
            let mut plan = self.plan.clone();
            plan.seed = seed;
            let run = run(&Rc::new(plan));
            for (all, effects) in effects.iter_mut().zip(&run.effects) {
                *all += u64::from(*effects);
            }
            let broken = self.count(&run, &mut judged);
            let expected = self.expect.property();
            let is_found = broken.iter().any(|property| expected == Some(*property));
            let mut others = broken
                .iter()
                .filter(|property| expected != Some(**property));
            let other = others.find(|property| !self.expect.allows(**property));
            unexpected = unexpected.or(other.map(|property| (*property, seed)));
            if is_found {
                judged.first = judged.first.or(Some(seed));
            }
            let is_enough = is_found && depth == Depth::UntilFound && self.figure.is_none();
            if unexpected.is_some() || is_enough {
                break;
            }
        }
        if let Some((_, seed)) = unexpected {
            judged.first = Some(seed);
        }
        let effects: Vec<(Fault, u64)> = faults.into_iter().zip(effects).collect();
        judged.verdict = self.verdict(&judged, unexpected.map(|(property, _)| property), &effects);
        judged
    }

    /// Adds a run, and returns the properties that it broke.
    fn count(&self, run: &Run, judged: &mut Judged) -> Vec<Property> {
        judged.runs += 1;
        judged.grants += u64::from(run.history.holds);
        judged.refusals += run.counters.refused;
        if let Some((figure, measured)) = self.figure.as_ref().zip(judged.measured.as_mut()) {
            figure.of.count(run, measured);
        }
        let is_broken = |property: &Property| check_one(*property, &run.history).is_some();
        let broken: Vec<Property> = Property::ALL.into_iter().filter(is_broken).collect();
        for property in &broken {
            *judged.broken.entry(*property).or_default() += 1;
        }
        broken
    }

    fn verdict(
        &self,
        judged: &Judged,
        unexpected: Option<Property>,
        effects: &[(Fault, u64)],
    ) -> CaseVerdict {
        if let Some(property) = unexpected {
            return CaseVerdict::Broken(property);
        }
        // A break that was found proves that enough happened.
        let is_found = judged.first.is_some();
        if !is_found && let Some(why) = self.vacuity(judged, effects) {
            return CaseVerdict::Vacuous(why);
        }
        if let Some(property) = self.expect.property().filter(|_| !is_found) {
            return CaseVerdict::NotFound(property);
        }
        let figures = self.figure.as_ref().zip(judged.measured.as_ref());
        match figures.and_then(|(figure, measured)| figure.wrong(measured)) {
            Some(why) => CaseVerdict::OtherFigure(why),
            None => CaseVerdict::AsExpected,
        }
    }

    fn vacuity(&self, judged: &Judged, effects: &[(Fault, u64)]) -> Option<String> {
        if judged.grants < self.min.grants {
            let min = self.min.grants;
            return Some(format!("{} holds, at least {min} wanted", judged.grants));
        }
        if judged.refusals < self.min.refusals {
            let (found, min) = (judged.refusals, self.min.refusals);
            return Some(format!("{found} refusals, at least {min} wanted"));
        }
        let idle = effects.iter().find(|(_, effects)| *effects == 0);
        idle.map(|(fault, _)| format!("never had an effect: {fault}, {}", fault.when))
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

    /// Returns whether a property may be broken, too.
    fn allows(&self, property: Property) -> bool {
        match self {
            Expect::Holds => false,
            Expect::Breaks(_, beside) => beside.contains(&property),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::scenario::Least;
    use quorlock_sim_plan::fault::NodeFault;
    use quorlock_sim_plan::time::SimTime;
    use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

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
