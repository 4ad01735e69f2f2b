//! Runs of the simulator, for users who test locks or code of their own.

#[cfg(feature = "locks")]
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
#[cfg(feature = "locks")]
use std::sync::Arc;

use crate::client::context::Context;
#[cfg(feature = "locks")]
use crate::client::workload;
use crate::turmoil::Bytes;
use quorlock_sim_check::run::{self, Run, recorded};
use quorlock_sim_plan::{Lane, Plan};
use quorlock_sim_world::engine::Ended;
use quorlock_sim_world::history::recording::Recording;
use quorlock_sim_world::seam::medium::Values;
use quorlock_sim_world::world::medium::Medium;
use quorlock_sim_world::world::task::Program;

/// Runs the workload of a plan. The plan must be valid.
#[cfg(feature = "locks")]
#[must_use]
pub fn run(plan: &Rc<Plan>) -> Run {
    run_with(plan, workload::main)
}

/// Runs the workload of a plan and records what an observer can see of it. The run is the same as without recording.
#[cfg(feature = "locks")]
#[must_use]
pub fn run_recorded(plan: &Rc<Plan>) -> (Run, Recording) {
    recorded(|| run(plan))
}

#[cfg(feature = "locks")]
fn run_with(
    plan: &Rc<Plan>,
    main: impl Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + 'static,
) -> Run {
    run_all(plan, main, || {}, |ended| 0 < ended.history.holds)
}

/// Runs a user's own clients until they end, then the closure that examines their world.
pub(crate) fn run_own(
    plan: &Rc<Plan>,
    main: impl Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + 'static,
    end: impl Fn() + 'static,
) -> Run {
    run_all(plan, main, end, is_own_work_shown)
}

/// Returns whether a user's own clients did anything. Clients may leave no record, so grants by nodes, marks, and
/// calls to resources count too.
fn is_own_work_shown(ended: &Ended) -> bool {
    let history = &ended.history;
    let has_said = !history.marks.is_empty() || !history.stated.is_empty();
    let has_asked = history.asked.iter().any(|asked| asked.done.is_some());
    0 < history.holds || 0 < ended.counters.granted || has_said || has_asked
}

/// Returns the medium of a lane.
fn medium(lane: Lane) -> &'static dyn Medium {
    match lane {
        Lane::Fast => &Values,
        Lane::Turmoil => &Bytes,
    }
}

fn run_all(
    plan: &Rc<Plan>,
    main: impl Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + 'static,
    end: impl Fn() + 'static,
    is_work_shown: impl Fn(&Ended) -> bool,
) -> Run {
    let medium = medium(plan.lane);
    let program = |plan: &Rc<Plan>| {
        let plan = Rc::clone(plan);
        Program::new(move |who| main(Context::new(who, &plan, medium))).ending(end)
    };
    run::run(plan, medium, program, is_work_shown)
}

#[cfg(feature = "locks")]
type ClientFn = Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync>;

/// A simulation of your own clients.
#[cfg(feature = "locks")]
#[derive(Clone)]
#[must_use]
pub struct Simulation {
    plan: Plan,
    client: ClientFn,
}

#[cfg(feature = "locks")]
impl Simulation {
    /// Creates a simulation of a plan. The plan's workload only determines the length of leases.
    pub fn new<F>(plan: Plan, client: impl Fn(Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Simulation {
            plan,
            client: Arc::new(move |ctx| Box::pin(client(ctx))),
        }
    }

    /// Runs the simulation with a seed.
    #[must_use]
    pub fn run(&self, seed: u64) -> Run {
        let mut plan = self.plan.clone();
        plan.seed = seed;
        let client = Arc::clone(&self.client);
        run_own(&Rc::new(plan), move |ctx| client(ctx), || {})
    }
}

#[cfg(feature = "locks")]
impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
