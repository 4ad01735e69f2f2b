//! How often the members of a quorum hand out the same token, so that one round trip is enough.

use std::rc::Rc;

use quorlock_sim::plan::{LockKind, Plan, WorkloadKind};
use quorlock_sim::simulation::run;
use quorlock_sim::swarm::{FaultChoice, PlanGenerator};

/// How many holds were won, and how often a larger token was proposed to a node, at most.
fn measure(plan: impl Fn(u64) -> Plan, seeds: u64) -> (u64, u64) {
    let mut sum = (0, 0);
    for seed in 0..seeds {
        let plan = Rc::new(plan(seed));
        let run = run(&plan);
        let holds = u64::from(run.history.holds);
        let nodes = u64::from(plan.nodes.count);
        // Every hold asks each node once, and gives back once.
        let proposals = run.counters.commands.saturating_sub(2 * nodes * holds);
        sum = (sum.0 + holds, sum.1 + proposals);
    }
    sum
}

/// Of all uncontended acquisitions at least 95 of 100, on clocks that are right and on clocks that are not.
#[test]
fn an_uncontended_quorum_agrees_on_the_token() {
    let right = |seed| Plan {
        seed,
        clients: 1,
        ..Plan::default()
    };
    let swarm = PlanGenerator {
        faults: FaultChoice::None,
        lock: LockKind::Redlock,
        nodes: Some(5),
        clients: Some(1),
        workload: Some(WorkloadKind::MutualExclusion),
        ..PlanGenerator::default()
    };
    let drawn = |seed| {
        let mut plan = swarm.plan(seed);
        // A renewal is no proposal.
        plan.workload.watchdog = quorlock_sim::plan::Watchdog::Off;
        plan
    };
    for (what, (holds, proposals)) in [
        ("the reference workload", measure(right, 20)),
        ("drawn plans", measure(drawn, 20)),
    ] {
        assert!(500 < holds, "{what}: {holds}");
        // At least three nodes get each proposal.
        assert!(
            proposals <= 3 * holds / 20,
            "{what}: {proposals} of {holds}"
        );
    }
}
