//! Flawed clients of a cluster. Their adapter is the product's, but its messages are changed. There is also a majority
//! of shards whose clients trust promoted replicas.

use std::ops::Range;
use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::{Deployment, PlanGenerator};
use quorlock_sim_plan::property::Property;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::Variant;
use quorlock_sim_plan::{Lane, LockKind, Plan, WorkloadKind};

/// The variants that are tested here.
pub(super) const PLANTED: [Variant; 1] = [Variant::UnheardMoved];

fn broken(plan: Plan) -> Option<Property> {
    quorlock_sim_plan::check(&plan).expect("a plan that can be run");
    match run(&Rc::new(plan)).verdict {
        Verdict::Violated(violation) => Some(violation.property),
        _ => None,
    }
}

/// Compares what breaks in drawn plans with and without the flaw.
fn compare(
    generator: &PlanGenerator,
    shape: fn(&mut Plan),
    wrong: fn(&mut Plan),
    breaks: Property,
    seeds: Range<u64>,
) {
    let plan = |seed| {
        let mut plan = generator.plan(seed);
        shape(&mut plan);
        plan
    };
    let is_found = |seed: &u64| {
        let mut plan = plan(*seed);
        wrong(&mut plan);
        broken(plan) == Some(breaks)
    };
    let found = seeds.clone().find(is_found);
    let found = found.unwrap_or_else(|| panic!("{breaks} was not broken in {seeds:?}"));
    for seed in seeds.start..=found {
        assert_eq!(broken(plan(seed)), None, "nothing is wrong: seed {seed}");
    }
}

fn generator(lock: LockKind, faults: &str) -> PlanGenerator {
    PlanGenerator {
        faults: faults.parse().expect("kinds of fault"),
        lane: Lane::Turmoil,
        deployment: Deployment::Clusters,
        lock,
        workload: Some(WorkloadKind::MutualExclusion),
        ..PlanGenerator::default()
    }
}

/// Uses one name, whose shard is handed over manually, so that nothing is lost.
fn by_hand(plan: &mut Plan) {
    use quorlock_sim_plan::fault::{FaultKind, Handover, NodeFault};
    plan.workload.names = 1;
    for fault in &mut plan.faults {
        if let FaultKind::Node {
            node,
            fault: NodeFault::ClusterFailover { how },
            ..
        } = &mut fault.what
        {
            (*node, *how) = (0, Handover::Manual);
        }
    }
}

#[test]
fn moved_is_not_heard() {
    let generator = generator(LockKind::Single, "cluster-failover");
    let wrong = |plan: &mut Plan| plan.variant = Variant::UnheardMoved;
    compare(&generator, by_hand, wrong, Property::Progress, 0..30);
}

/// Claims take a long time to reach the replicas, which replace their primaries in two of three shards.
fn two_at_once(plan: &mut Plan) {
    use quorlock_sim_plan::fault::{Fault, Handover, NodeFault};
    plan.workload.names = 1;
    plan.workload.lease = SimTime::millis(800);
    (plan.workload.hold_min, plan.workload.hold_max) = (SimTime::millis(600), SimTime::millis(600));
    plan.workload.poll_cap = SimTime::millis(100);
    plan.nodes.count = 3;
    plan.nodes.wait = None;
    plan.nodes.min_replicas = None;
    plan.nodes.replication_lag = SimTime::millis(500);
    let how = Handover::Takeover;
    let take = |node| {
        Fault::of_node(
            SimTime::millis(300),
            node,
            NodeFault::ClusterFailover { how },
        )
    };
    plan.faults = vec![take(0), take(1)];
}

#[test]
fn promoted_shards_are_not_quarantined() {
    let generator = generator(LockKind::Redlock, "none");
    let wrong = |plan: &mut Plan| plan.remedies.trust = false;
    compare(&generator, two_at_once, wrong, Property::Exclusion, 0..40);
}
