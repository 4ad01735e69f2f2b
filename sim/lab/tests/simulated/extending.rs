//! Tasks that extend and re-enter one hold while the watchdog renews it, under faults inside the assumptions.

use std::rc::Rc;

use quorlock_sim_check::run::Verdict;
use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::generator::PlanGenerator;
use quorlock_sim_plan::{LockKind, WorkloadKind};
use quorlock_sim_world::history::{Action, Outcome};

const SEEDS: u64 = 150;

/// Nodes execute requests late, twice and out of order. No request reverts what a later one has stated.
#[test]
fn a_hold_that_is_extended_and_entered_at_once_keeps_every_property() {
    for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
        let generator = PlanGenerator {
            lock,
            workload: Some(WorkloadKind::Extending),
            ..PlanGenerator::default()
        };
        let (mut extended, mut entered) = (0, 0);
        for seed in 0..SEEDS {
            let run = run(&Rc::new(generator.plan(seed)));
            let verdict = &run.verdict;
            let is_clean = !matches!(verdict, Verdict::Violated(_));
            assert!(is_clean, "{lock:?}, seed {seed}: {verdict:?}");
            for operation in &run.history.operations {
                let is_done = operation.outcome == Outcome::Ok;
                extended += u64::from(is_done && operation.action == Action::Extend);
                entered += u64::from(is_done && operation.action == Action::Reenter);
            }
        }
        assert!(
            10 * SEEDS < extended.min(entered),
            "{lock:?}: {extended}, {entered}"
        );
    }
}
