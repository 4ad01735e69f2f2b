//! Stores that break a rule of a store of one's own. The transport over them is the product's.

use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::scenario::find;
use quorlock_sim_plan::generator::{Deployment, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

/// The variants that are tested here, and that each have a case of a scenario in which they break.
pub(super) const PLANTED: [Variant; 5] = [
    Variant::BlindWrites,
    Variant::UntoldChanges,
    Variant::LostIsFailed,
    Variant::ClientClockStore,
    Variant::SilentSuccessor,
];

/// Returns what breaks in a plan.
fn broken(plan: Plan) -> Option<Property> {
    quorlock_sim_plan::check(&plan).expect("a plan that can be run");
    match run(&Rc::new(plan)).verdict {
        Verdict::Violated(violation) => Some(violation.property),
        _ => None,
    }
}

/// Checks that a flaw is noticed in drawn plans within some seeds, and that the product breaks nothing in the same plans.
fn compare(variant: Variant, within: u64) {
    let plan = |seed, variant| {
        let generator = PlanGenerator {
            deployment: Deployment::Stores,
            lock: LockKind::Single,
            workload: Some(WorkloadKind::MutualExclusion),
            variant,
            ..PlanGenerator::default()
        };
        generator.plan(seed)
    };
    let found = (0..within).find(|seed| broken(plan(*seed, variant)) == Some(Property::Exclusion));
    let found = found.unwrap_or_else(|| panic!("{variant}: nothing is broken within {within}"));
    for seed in 0..=found {
        let broken = broken(plan(seed, Variant::Product));
        assert_eq!(broken, None, "{variant}, with nothing wrong: seed {seed}");
    }
}

#[test]
fn a_store_writes_without_the_condition() {
    compare(Variant::BlindWrites, 20);
}

#[test]
fn a_store_passes_the_clock_of_its_client_on() {
    compare(Variant::ClientClockStore, 40);
}

#[test]
fn every_flaw_of_a_store_has_a_scenario() {
    let scenarios = ["D2", "D5", "D6", "D7", "D8"].map(|id| find(id).expect("it is there"));
    for variant in PLANTED {
        let mut cases = scenarios.iter().flat_map(|scenario| &scenario.cases);
        let shown = cases.any(|case| case.plan.variant == variant);
        assert!(shown, "{variant}");
    }
}
