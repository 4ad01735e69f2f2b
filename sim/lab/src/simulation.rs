//! Runs of the lab's own clients, and of clients in tests of the simulator.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use quorlock_sim::simulation::{run_clients, run_own};
use quorlock_sim_check::run::{Run, recorded};
use quorlock_sim_plan::{Lane, Plan};
use quorlock_sim_world::engine::Ended;
use quorlock_sim_world::history::recording::Recording;
use quorlock_sim_world::seam::medium::Values;
use quorlock_sim_world::world::medium::Medium;

use crate::client::context::Context;
use crate::client::workload;
use crate::turmoil::Bytes;

/// Runs the workload of a plan. The plan must be valid.
#[must_use]
pub fn run(plan: &Rc<Plan>) -> Run {
    let main = |ctx| workload::main(Context::new(ctx));
    let is_work_shown = |ended: &Ended| 0 < ended.history.holds;
    run_clients(plan, medium(plan.lane), main, || {}, is_work_shown)
}

/// Runs the workload of a plan and records what an observer can see of it. The run is the same as without recording.
#[must_use]
pub fn run_recorded(plan: &Rc<Plan>) -> (Run, Recording) {
    recorded(|| run(plan))
}

/// Returns the medium of a lane.
fn medium(lane: Lane) -> &'static dyn Medium {
    match lane {
        Lane::Fast => &Values,
        Lane::Turmoil => &Bytes,
    }
}

type ClientFn = Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync>;

/// A simulation of your own clients.
#[derive(Clone)]
#[must_use]
pub struct Simulation {
    plan: Plan,
    client: ClientFn,
}

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
        let main = move |ctx| client(Context::new(ctx));
        run_own(&Rc::new(plan), medium(self.plan.lane), main, || {})
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
