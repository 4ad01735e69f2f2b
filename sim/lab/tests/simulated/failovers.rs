//! Repeated failovers of one node.

#![expect(
    clippy::print_stdout,
    reason = "the figures of a page are shown by --nocapture"
)]

use std::path::Path;
use std::rc::Rc;

use quorlock_sim_check::Violation;
use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::plan_file;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::Plan;
use quorlock_sim_plan::property::Property;

/// Returns a plan with holds on three nodes, each with a replica, and with these faults.
fn plan(faults: &str) -> Plan {
    let text = format!(
        "lock = 'redlock'
        clients = 8
        duration = '2.5s'
        nodes = {{ count = 3, persistence = 'every-write', replicas = 1, replication_lag = '1ms' }}
        network = {{ min = '10us', max = '100us', call_timeout = '30ms', connect_timeout = '30ms' }}
        {faults}
        [workload]
        kind = 'raised-updates'
        names = 2
        lease = '150ms'
        hold_min = '0s'
        hold_max = '240ms'
        think_min = '0s'
        think_max = '5ms'
        poll_cap = '100ms'
        backoff_cap = '20ms'"
    );
    plan_file::parse(Path::new("failovers.toml"), &text).expect("a plan")
}

/// Returns how many of 30 seeds break exclusion.
fn breaks(plan: &Plan) -> usize {
    let violated = |seed| {
        let run = run(&Rc::new(Plan {
            seed,
            ..plan.clone()
        }));
        matches!(
            run.verdict,
            Verdict::Violated(Violation {
                property: Property::Exclusion,
                ..
            })
        )
    };
    (0..30).filter(|seed| violated(*seed)).count()
}

const LEFT_BEHIND: &str = "[[faults]]
    kind = 'failover'
    at = '700ms'
    node = 0
    replica = 0
    left_behind = [1, 2, 5]
    rejoin_after = '900ms'\n";

/// Clients may stay with the old primary for longer than the others watch the new one. Then they count the old primary
/// towards a majority, while the others count the new one.
#[test]
fn a_node_fails_over_to_the_server_that_was_its_primary_before() {
    let first = breaks(&plan(LEFT_BEHIND));
    let before = "[[faults]]
        kind = 'failover'
        at = '100ms'
        node = 0
        replica = 0
        left_behind = []
        rejoin_after = '50ms'\n";
    let again = plan(&format!("{before}{LEFT_BEHIND}"));
    let second = breaks(&again);
    println!("of 30 seeds {first} break, and {second} when the servers have changed places before");
    assert!(0 < first && 0 < second);
}
