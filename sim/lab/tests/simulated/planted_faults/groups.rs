//! Flawed clients of Sentinel groups. Their adapter is the product's, but its settings or its messages are changed.

use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::{Deployment, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{Connections, Lane, LockKind, Plan, WorkloadKind};

/// The variants that are tested here.
pub(super) const PLANTED: [Variant; 3] = [
    Variant::Unawaited,
    Variant::UnheardSwitch,
    Variant::DeafClients,
];

/// Compares what breaks in drawn plans with a variant and with the product.
fn compare(
    variant: Variant,
    faults: &str,
    shape: fn(&mut Plan),
    breaks: Property,
    seeds: std::ops::Range<u64>,
) {
    let broken = |seed: u64, variant: Variant| {
        let generator = PlanGenerator {
            faults: faults.parse().expect("kinds of fault"),
            lane: Lane::Turmoil,
            deployment: Deployment::Groups,
            lock: LockKind::Single,
            workload: Some(WorkloadKind::MutualExclusion),
            variant,
            ..PlanGenerator::default()
        };
        let mut plan = generator.plan(seed);
        shape(&mut plan);
        quorlock_sim_plan::check(&plan).expect("a plan that can be run");
        match run(&Rc::new(plan)).verdict {
            Verdict::Violated(violation) => Some(violation.property),
            _ => None,
        }
    };
    let found = seeds
        .clone()
        .find(|seed| broken(*seed, variant) == Some(breaks));
    let found = found.unwrap_or_else(|| panic!("{variant}: {breaks} was not broken in {seeds:?}"));
    // The product runs all plans up to that one.
    for seed in seeds.start..=found {
        let broken = broken(seed, Variant::Product);
        assert_eq!(
            broken, None,
            "{variant}, but with nothing wrong: seed {seed}"
        );
    }
}

/// Uses one name, with slow replication.
fn slow_replicas(plan: &mut Plan) {
    plan.workload.names = 1;
    plan.workload.hold_max = SimTime::millis(100);
    plan.nodes.replication_lag = SimTime::millis(8);
    if let Some(wait) = &mut plan.nodes.wait {
        wait.within = SimTime::millis(60);
    }
}

/// Sentinels replace a primary quickly and demote the old one slowly. Answers do not wait for replicas.
fn quick_to_elect(plan: &mut Plan) {
    plan.workload.names = 1;
    plan.workload.lease = SimTime::millis(400);
    plan.workload.hold_max = SimTime::millis(200);
    plan.nodes.wait = None;
    plan.nodes.min_replicas = None;
    plan.nodes.replication_lag = SimTime::micros(200);
    if let Some(sentinels) = &mut plan.nodes.sentinels {
        sentinels.down_after = SimTime::millis(20);
        sentinels.election = SimTime::millis(5);
        sentinels.gossip = SimTime::millis(5);
        sentinels.demotion = SimTime::millis(500);
    }
}

/// Servers change their roles, but their connections stay open.
fn kept_connections(plan: &mut Plan) {
    plan.workload.names = 1;
    plan.nodes.min_replicas = None;
    if let Some(sentinels) = &mut plan.nodes.sentinels {
        sentinels.demotion = SimTime::ZERO;
        sentinels.connections = Connections::Kept;
    }
}

#[test]
fn replicas_are_not_waited_for() {
    let breaks = Property::Exclusion;
    compare(Variant::Unawaited, "inside", slow_replicas, breaks, 0..40);
}

#[test]
fn what_sentinels_publish_is_not_heard() {
    let breaks = Property::Exclusion;
    let faults = "pause-node";
    compare(
        Variant::UnheardSwitch,
        faults,
        quick_to_elect,
        breaks,
        0..60,
    );
}

#[test]
fn neither_sentinels_nor_readonly_are_heard() {
    let breaks = Property::Progress;
    let faults = "sentinel-failover";
    compare(
        Variant::DeafClients,
        faults,
        kept_connections,
        breaks,
        0..30,
    );
}
