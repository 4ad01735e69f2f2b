//! Stores that break a rule of a store of one's own. The transport over them is the product's.

use std::ops::Range;
use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_lab::study::scenario::find;
use quorlock_sim_plan::generator::{Deployment, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

/// The variants that are tested here, and that each have a case of a scenario in which they break.
pub(super) const PLANTED: [Variant; 6] = [
    Variant::BlindWrites,
    Variant::VersionFromACounter,
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

/// Checks that a flaw is noticed in drawn plans of these seeds, and that the product breaks nothing in the same plans.
fn compare(variant: Variant, lock: LockKind, breaks: Property, seeds: Range<u64>) {
    let plan = |seed, variant| {
        let generator = PlanGenerator {
            deployment: Deployment::Stores,
            lock,
            nodes: (lock == LockKind::Redlock).then_some(3),
            workload: Some(WorkloadKind::MutualExclusion),
            variant,
            ..PlanGenerator::default()
        };
        generator.plan(seed)
    };
    let is_noticed = |seed: &u64| broken(plan(*seed, variant)) == Some(breaks);
    let found = seeds.clone().find(is_noticed);
    let found = found.unwrap_or_else(|| panic!("{variant}: {breaks} was not broken in {seeds:?}"));
    for seed in seeds.start..=found {
        let broken = broken(plan(seed, Variant::Product));
        assert_eq!(broken, None, "{variant}, with nothing wrong: seed {seed}");
    }
}

#[test]
fn a_store_writes_without_the_condition() {
    compare(
        Variant::BlindWrites,
        LockKind::Single,
        Property::Exclusion,
        0..20,
    );
}

#[test]
fn a_store_counts_its_versions_and_an_older_state_comes_back() {
    compare(
        Variant::VersionFromACounter,
        LockKind::Single,
        Property::Exclusion,
        60..130,
    );
}

#[test]
fn a_store_tells_its_clients_of_no_change() {
    compare(
        Variant::UntoldChanges,
        LockKind::Single,
        Property::Progress,
        0..40,
    );
}

#[test]
fn a_driver_takes_a_lost_reply_for_a_refusal() {
    compare(
        Variant::LostIsFailed,
        LockKind::Single,
        Property::Progress,
        0..40,
    );
}

#[test]
fn a_store_passes_the_clock_of_its_client_on() {
    compare(
        Variant::ClientClockStore,
        LockKind::Single,
        Property::Exclusion,
        0..40,
    );
}

#[test]
fn a_replica_takes_over_as_the_process_of_its_primary() {
    compare(
        Variant::SilentSuccessor,
        LockKind::Redlock,
        Property::Exclusion,
        540..580,
    );
}

#[test]
fn every_flaw_of_a_store_has_a_scenario() {
    let scenarios = ["D2", "D5", "D6", "D7", "D8", "D10"];
    let scenarios = scenarios.map(|id| find(id).expect("it is there"));
    for variant in PLANTED {
        let mut cases = scenarios.iter().flat_map(|scenario| &scenario.cases);
        let shown = cases.any(|case| case.plan.variant == variant);
        assert!(shown, "{variant}");
    }
}
