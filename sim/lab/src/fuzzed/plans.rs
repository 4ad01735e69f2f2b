//! Plans in TOML.

use std::path::Path;
use std::rc::Rc;

use crate::plan_file::{parse, write};
use crate::simulation::run;
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::{Lane, Plan};

/// Parses the bytes as a plan, and runs the plan if it is small.
///
/// # Panics
/// Panics if a plan changes when it is written and read again, if an accepted plan cannot be run, or if two runs of a
/// plan differ.
pub fn plans(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let path = Path::new("x.toml");
    let plan = match parse(path, text) {
        Ok(plan) => plan,
        Err(error) => {
            let told = error.to_string();
            assert!(told.starts_with("x.toml"), "it names no place: {told}");
            return;
        }
    };
    let written = write(&plan).unwrap_or_else(|error| panic!("{error}"));
    match parse(path, &written) {
        Ok(again) => assert_eq!(again, plan, "{written}"),
        Err(error) => panic!("{error}\n{written}"),
    }
    if is_small(&plan) {
        let plan = Rc::new(plan);
        let (once, twice) = (run(&plan), run(&plan));
        assert_eq!((once.trace, once.verdict), (twice.trace, twice.verdict));
    }
}

/// Returns whether a run of the plan takes only a moment: little time, few processes, and no loops without pauses.
fn is_small(plan: &Plan) -> bool {
    let network = &plan.network;
    let workload = &plan.workload;
    let pauses = [network.min, workload.poll_cap, workload.backoff_cap];
    let max = |span: SimTime| span <= SimTime::secs(3);
    plan.lane == Lane::Fast
        && plan.clients <= 6
        && plan.nodes.count <= 5
        && plan.faults.len() <= 20
        && pauses.into_iter().all(|pause| SimTime::micros(50) <= pause)
        && [plan.duration, workload.lease, workload.hold_max]
            .into_iter()
            .all(max)
}
