//! Shrinks failures of the lab's own clients.

use quorlock_sim::shrink::{Shrunk, Size, shrink_by};
use quorlock_sim_plan::Plan;

use crate::simulation::run;

/// Shrinks a failure with at most this many runs. `watch` receives the number of runs so far and the current size.
///
/// Returns `None` if the plan does not fail.
pub fn shrink(plan: &Plan, most_runs: u32, watch: &mut dyn FnMut(u32, &Size)) -> Option<Shrunk> {
    shrink_to(plan, 1, most_runs, watch)
}

/// Shrinks a failure to no fewer nodes than this. A majority of one node would have no remedies of a majority.
pub(crate) fn shrink_to(
    plan: &Plan,
    least_nodes: u16,
    most_runs: u32,
    watch: &mut dyn FnMut(u32, &Size),
) -> Option<Shrunk> {
    let shrunk = shrink_by(plan, least_nodes, most_runs, MANY_SEEDS, &run, watch);
    shrunk.map(|(shrunk, _)| shrunk)
}

/// The number of other seeds if there is much to gain.
const MANY_SEEDS: u64 = 48;

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use quorlock_sim::shrink::Identity;
    use quorlock_sim_check::run::Verdict;
    use quorlock_sim_plan::generator::{FaultChoice, PlanGenerator};

    use super::*;

    fn failing() -> Plan {
        let generator = PlanGenerator {
            faults: FaultChoice::All,
            lock: quorlock_sim_plan::LockKind::Single,
            ..PlanGenerator::default()
        };
        let mut plans = (0..400).map(|seed| generator.plan(seed));
        let fails = |plan: &Plan| {
            let run = run(&Rc::new(plan.clone()));
            matches!(run.verdict, Verdict::Violated(_))
        };
        plans.find(fails).expect("some plan fails")
    }

    #[test]
    fn a_failure_gets_smaller_and_stays_the_same() {
        let plan = failing();
        let shrunk = shrink(&plan, 1_500, &mut |_, _| {}).expect("it fails");
        assert!(shrunk.runs <= 1_500);
        assert!(shrunk.after.faults <= 3, "{:?}", shrunk.after);
        assert!(shrunk.after.events < shrunk.before.events / 4, "{shrunk:?}");
        let again = run(&shrunk.run.plan);
        assert_eq!(again.verdict, shrunk.run.verdict);
        let Verdict::Violated(violation) = &again.verdict else {
            panic!("it holds: {:?}", again.verdict)
        };
        assert_eq!(Identity::of(violation), shrunk.identity);
    }

    #[test]
    fn no_fault_that_is_left_can_be_left_out() {
        let shrunk = shrink(&failing(), 4_000, &mut |_, _| {}).expect("it fails");
        for index in 0..shrunk.run.plan.faults.len() {
            let mut plan = Plan::clone(&shrunk.run.plan);
            plan.faults.remove(index);
            assert!(!shrunk.identity.is_of(&run(&Rc::new(plan))), "{index}");
        }
    }

    #[test]
    fn what_does_not_fail_cannot_be_shrunk() {
        assert!(shrink(&Plan::default(), 10, &mut |_, _| {}).is_none());
    }
}
