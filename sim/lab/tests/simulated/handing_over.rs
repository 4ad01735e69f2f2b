//! Holds that pass from one client to another, under faults inside the assumptions.

use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::{LockKind, WorkloadKind};

const SEEDS: u64 = 150;

/// Clients try tickets that were adopted before, are killed and stopped between the two, and messages are late, lost and repeated.
#[test]
fn a_hold_is_adopted_once_and_no_other_client_is_in_between() {
    for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
        let generator = PlanGenerator {
            lock,
            workload: Some(WorkloadKind::HandingOver),
            ..PlanGenerator::default()
        };
        let mut adopted = 0;
        for seed in 0..SEEDS {
            let run = run(&Rc::new(generator.plan(seed)));
            let verdict = &run.verdict;
            let is_clean = !matches!(verdict, Verdict::Violated(_));
            assert!(is_clean, "{lock:?}, seed {seed}: {verdict:?}");
            adopted += run.history.adoptions.len();
        }
        assert!(300 < adopted, "{lock:?}: {adopted}");
    }
}
