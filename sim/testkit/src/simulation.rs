//! Runs of clients that share a world.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use quorlock_sim_check::run::{self, Run};
use quorlock_sim_plan::Plan;
use quorlock_sim_world::engine::Ended;
use quorlock_sim_world::world::medium::Medium;
use quorlock_sim_world::world::task::Program;

use crate::context::Context;

/// Runs a user's own clients until they end, then the closure that examines their world. The plan must be valid, and its
/// lane that of the medium.
pub fn run_own(
    plan: &Rc<Plan>,
    medium: &'static dyn Medium,
    main: impl Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + 'static,
    end: impl Fn() + 'static,
) -> Run {
    run_clients(plan, medium, main, end, is_own_work_shown)
}

/// Returns whether a user's own clients did anything. Clients may leave no record, so grants by nodes, marks, and
/// calls to resources count too.
fn is_own_work_shown(ended: &Ended) -> bool {
    let history = &ended.history;
    let has_said = !history.marks.is_empty() || !history.stated.is_empty();
    let has_asked = history.asked.iter().any(|asked| asked.done.is_some());
    0 < history.holds || 0 < ended.counters.granted || has_said || has_asked
}

/// Runs clients like [`run_own`]. The run is vacuous if `is_work_shown` finds no work in what has ended.
pub fn run_clients(
    plan: &Rc<Plan>,
    medium: &'static dyn Medium,
    main: impl Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + 'static,
    end: impl Fn() + 'static,
    is_work_shown: impl FnOnce(&Ended) -> bool,
) -> Run {
    let program = |plan: &Rc<Plan>| {
        let plan = Rc::clone(plan);
        Program::new(move |who| main(Context::new(who, &plan, medium))).ending(end)
    };
    run::run(plan, medium, program, is_work_shown)
}
