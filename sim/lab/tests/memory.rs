//! The memory of a campaign does not grow with its seeds.

use std::rc::Rc;

use quorlock_sim_lab::simulation::run;
use quorlock_sim_plan::LockKind;
use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};
use quorlock_sim_plan::time::SimTime;

fn batch() {
    for lock in [LockKind::Single, LockKind::Multi, LockKind::Redlock] {
        let generator = PlanGenerator {
            lock,
            faults: FaultChoice::All,
            duration: Some(SimTime::millis(200)),
            ..PlanGenerator::default()
        };
        for seed in 0..20 {
            drop(run(&Rc::new(generator.plan(seed))));
        }
    }
}

/// The buffers that a thread keeps for its next run have reached their size after the first batch. The second batch
/// must leak nothing.
#[test]
fn runs_leave_no_memory_behind() {
    batch();
    let left = allocation_counter::measure(batch);
    assert!(100_000 < left.count_total);
    assert_eq!((left.count_current, left.bytes_current), (0, 0));
}
