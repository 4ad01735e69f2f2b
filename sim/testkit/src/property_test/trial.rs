//! One run of a test.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::assertion::{Attended, tested};
use crate::context::Context;
use crate::simulation::run_own;
use quorlock_sim_check::run::{Run, recorded};
use quorlock_sim_plan::Plan;
use quorlock_sim_world::history::recording::Recording;
use quorlock_sim_world::seam::medium::Values;

type TrialClient<W> = Rc<dyn Fn(Context, Rc<W>) -> Pin<Box<dyn Future<Output = ()>>>>;

/// The clients of a test, and the world that they share.
pub(super) struct Trial<W> {
    client: TrialClient<W>,
    world: Rc<dyn Fn() -> W>,
    end: Rc<dyn Fn(&W)>,
}

impl<W: 'static> Trial<W> {
    pub(super) fn new<F>(
        world: &Rc<dyn Fn() -> W>,
        end: &Rc<dyn Fn(&W)>,
        client: impl Fn(Context, Rc<W>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Trial {
            client: Rc::new(move |ctx, world| Box::pin(client(ctx, world))),
            world: Rc::clone(world),
            end: Rc::clone(end),
        }
    }

    /// Runs a plan.
    pub(super) fn run(&self, plan: &Rc<Plan>) -> Run {
        // The first client that starts creates the world. By then the run has begun, so resources can register with it.
        let shared: Rc<OnceCell<Rc<W>>> = Rc::default();
        let (client, make) = (Rc::clone(&self.client), Rc::clone(&self.world));
        let at_start = Rc::clone(&shared);
        let main = move |ctx: Context| -> Pin<Box<dyn Future<Output = ()>>> {
            let world = Rc::clone(at_start.get_or_init(|| Rc::new(make())));
            let who = ctx.who();
            let client = Rc::clone(&client);
            // The async block makes the part of `client` before its first await a step of the client, too.
            let work = async move { client(ctx, world).await };
            Box::pin(Attended::new(who, work))
        };
        let look = Rc::clone(&self.end);
        let end = move || {
            if let Some(world) = shared.get() {
                look(world);
            }
        };
        tested(|| run_own(plan, &Values, main, end))
    }

    /// Runs a plan and records what an observer can see of the run.
    pub(super) fn recorded(&self, plan: &Rc<Plan>) -> (Run, Recording) {
        recorded(|| self.run(plan))
    }
}
