//! The end of a run: the clients stop working, everything comes to rest, and the state is cleared.

use crate::engine::Next;
use crate::history::Leftover;
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::Id;
use crate::world::node::Role;
use crate::world::task::TaskKind;

/// How often the run is checked for rest, in nanoseconds.
const REST: u64 = 50_000_000;

/// Stops the user's tasks wherever they are. Background tasks of the product continue. If progress is due later than the
/// plan could tell, the tasks go on until then.
pub(super) fn stop(world: &mut World) -> Option<Next> {
    let due = world.history.progress_due;
    if world.history.demands_progress && world.now() < due {
        world.push(due, Event::Stop);
        return None;
    }
    world.stop();
    world.push(world.now() + REST, Event::End);
    let mains = world.tasks.keys(|task| task.part() == TaskKind::Main);
    let tasks = mains.into_iter().filter_map(|key| world.tasks.remove(key));
    Some(Next::Drop(tasks.collect()))
}

/// Ends the run if no claim is left and no message is in flight, or if the bound for that has passed.
pub(super) fn end(world: &mut World) -> Option<Next> {
    let stopped_at = world.stopped_at().unwrap_or(world.now());
    let leftovers = leftovers(world);
    let is_quiet = world.calls.iter().next().is_none() && world.servers.is_quiet();
    let is_at_rest = leftovers.is_empty() && is_quiet;
    if !is_at_rest && world.now() < stopped_at + world.plan.rest_bound().as_nanos() {
        world.push(world.now() + REST, Event::End);
        return None;
    }
    world.history.leftovers = leftovers;
    Some(Next::End)
}

/// Returns the claims and waiters that are left on primaries.
fn leftovers(world: &mut World) -> Vec<Leftover> {
    let mut leftovers = Vec::new();
    for node in world.nodes.ids() {
        if world.node(node).role() != Role::Primary {
            continue;
        }
        let now = world.micros(node);
        let server = world.servers.server(node);
        for name in server.names_left(now, &world.history.names) {
            let name = world.history.name(&name);
            leftovers.push(Leftover {
                node: node.get(),
                name,
            });
        }
    }
    leftovers
}

/// Takes everything out of the world whose drop runs code of the product or of a user.
pub(super) fn clear(world: &mut World) -> impl Sized + use<> {
    world.events.clear();
    world.replies.drain();
    (
        world.tasks.drain(),
        world.alarms.drain(),
        world.calls.drain(),
        world.subscriptions.drain(),
        world.attendances.drain(),
        world.writes.drain(),
        world.jobs.drain(),
    )
}
