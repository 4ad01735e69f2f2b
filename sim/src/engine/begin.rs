//! How a run begins.

use std::rc::Rc;

use crate::engine::{faults, nodes};
use crate::plan::Plan;
use crate::plan::fault::{Fault, Kind};
use crate::plan::time::Span;
use crate::world::client::ClientState;
use crate::world::event::What;
use crate::world::link::Link;
use crate::world::medium::Medium;
use crate::world::node::{NodeState, Role};
use crate::world::store::Store;
use crate::world::task::forget_ready;
use crate::world::{Counters, World};

/// Puts everything of the run before aside, and the beginning of this one in its place.
pub(super) fn begin(world: &mut World, plan: &Rc<Plan>, medium: &dyn Medium) {
    forget_ready();
    world.run = world.run.wrapping_add(1);
    world.now = 0;
    world.plan = Rc::clone(plan);
    world.trace = plan.seed;
    world.events.clear();
    world.counters = Counters::default();
    world.history.clear();
    world.statements.clear();
    world.active.clear();
    world.promoted.clear();
    world.store = Store::new(plan.seed);
    world.effects.clear();
    world.effects.resize(plan.faults.len(), 0);
    world.stopped_at = None;
    world.is_stopped = false;
    let seats = plan.nodes.count;
    world.clients = (0..plan.clients)
        .map(|client| ClientState::new(plan.seed, client))
        .collect();
    world.nodes.clear();
    for _ in 0..seats {
        world.nodes.push(NodeState::new(Role::Primary));
    }
    // What a replica has is seen by nobody unless it is promoted or recorded.
    let is_failover = |fault: &Fault| fault.kind() == Kind::Failover;
    let are_replicas_seen = world.recording.is_some()
        || plan.nodes.wait.is_some()
        || plan.nodes.min_replicas.is_some()
        || plan.faults.iter().any(is_failover);
    for seat in 0..seats {
        for _ in 0..plan.nodes.replicas {
            let id = u16::try_from(world.nodes.len()).unwrap_or(u16::MAX);
            world.nodes.push(NodeState::new(Role::ReplicaOf(seat)));
            if are_replicas_seen {
                world.node(seat).replicas.push((id, 0));
            }
        }
    }
    let (least, most) = (plan.network.least.as_nanos(), plan.network.most.as_nanos());
    let links = usize::from(plan.clients) * world.nodes.len();
    world.links = (0..links)
        .map(|index| Link::new(plan.seed, index as u64, least, most))
        .collect();
    world.routes = (0..plan.clients).flat_map(|_| 0..seats).collect();
    world.history.healed = plan.heals_at().as_nanos();
    world.history.progress_due = plan.heals_at().plus(plan.progress_bound()).as_nanos();
    faults::schedule(world);
    let stop = if plan.faults.is_empty() {
        plan.duration
    } else {
        plan.duration.max(Span::nanos(world.history.progress_due))
    };
    // A run that ends before does not show that it would not have come.
    world.history.demands_progress = world.history.progress_due <= stop.as_nanos();
    world.push(stop.as_nanos(), What::Stop);
    world.servers = medium.servers(plan, world.nodes.len());
    nodes::ripen(world);
}
