//! Measures how often the members of a quorum hand out the same token, so that one round trip is enough.

use std::rc::Rc;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::{LockKind, Plan, WorkloadKind};

/// Returns how many holds were won, and an upper bound of how often a larger token was proposed to a node.
fn measure(plan: impl Fn(u64) -> Plan, seeds: u64) -> (u64, u64) {
    let mut sum = (0, 0);
    for seed in 0..seeds {
        let mut plan = plan(seed);
        // Nodes that are not watched are not probed.
        plan.remedies.trust = false;
        let plan = Rc::new(plan);
        let run = run(&plan);
        let holds = u64::from(run.history.holds);
        let nodes = u64::from(plan.nodes.count);
        // Each hold sends one acquire and one release to each node.
        let proposals = run.counters.commands.saturating_sub(2 * nodes * holds);
        sum = (sum.0 + holds, sum.1 + proposals);
    }
    sum
}

/// At least 95 of 100 uncontended acquisitions agree, with correct and with incorrect clocks.
#[test]
fn an_uncontended_quorum_agrees_on_the_token() {
    let right = |seed| Plan {
        seed,
        clients: 1,
        ..Plan::default()
    };
    let generator = PlanGenerator {
        faults: FaultChoice::None,
        lock: LockKind::Redlock,
        nodes: Some(5),
        clients: Some(1),
        workload: Some(WorkloadKind::MutualExclusion),
        ..PlanGenerator::default()
    };
    let drawn = |seed| {
        let mut plan = generator.plan(seed);
        // There are no renewals, because they would count as proposals here.
        plan.workload.watchdog = quorlock_sim_plan::Watchdog::Off;
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
