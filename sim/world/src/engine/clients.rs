//! Client processes: how they start, what they run, and what stops them.

pub mod endless;
pub mod executor;
pub mod timers;
pub mod writes;

use quorlock::OwnerId;

use crate::history::HoldId;
use crate::world::World;
use crate::world::client::Known;
use crate::world::event::Event;
use crate::world::id::{ClientId, ProcessId};
use crate::world::stop::Stop;
use crate::world::task::Task;

/// Records that a process uses a clock, a timer, randomness or the network. Returns the true time of the process,
/// which is later than now if a pause begins inside this step. Returns `None` if the process has ended.
#[inline]
pub fn seam(world: &mut World, who: ProcessId) -> Option<u64> {
    let now = world.now();
    let client = world.clients.get(who.client)?;
    if !client.is(who) {
        return None;
    }
    if !client.has_pauses_inside() {
        return Some(now.max(client.paused_until()));
    }
    count_towards_pause(world, who.client);
    Some(world.moment(who))
}

/// Counts a use of a seam, for the pauses that are due inside a step.
#[cold]
fn count_towards_pause(world: &mut World, client: ClientId) {
    if let Some(due) = world.client(client).count_towards_pause() {
        let until = world.now() + due.lasts();
        world.blame(due.fault());
        world.heals_later(until);
        pause(world, client, until);
    }
}

/// Pauses a client until this time.
pub fn pause(world: &mut World, client: ClientId, until: u64) {
    if let Some(pause) = world.client(client).pause(until) {
        world.push(until, Event::ResumeClient(client, pause));
    }
}

/// Schedules a stop in the middle of a step.
pub fn stop_inside(world: &mut World, client: ClientId, stop: Stop) {
    world.halt.arm();
    world.client(client).stops().push(stop);
}

/// Returns whether the future that the process waits for must be dropped now.
pub fn is_cancelled(world: &mut World, who: ProcessId) -> bool {
    let client = world.clients.get_mut(who.client);
    let due = client.and_then(|client| client.count_towards_cancel());
    if let Some(due) = due {
        world.blame(due.fault());
    }
    due.is_some()
}

/// Returns a new hold of this owner, which may have had another one: a hold that passes on inside a process keeps its owner.
pub fn new_hold(world: &mut World, who: ProcessId, owner: OwnerId, token: u64) -> Known {
    let next = HoldId(world.history.holds);
    let Some(client) = world.clients.get_mut(who.client) else {
        return Known::New(HoldId::NONE);
    };
    world.history.holds += 1;
    client.begin_hold(owner, token, next)
}

/// Returns the hold of this owner with this token. It is a new hold if the two are new.
pub fn hold_of(world: &mut World, who: ProcessId, owner: OwnerId, token: u64) -> Known {
    let next = HoldId(world.history.holds);
    let Some(client) = world.clients.get_mut(who.client) else {
        return Known::New(HoldId::NONE);
    };
    let known = client.hold_of(owner, token, next);
    if known.is_new() {
        world.history.holds += 1;
    }
    known
}

/// Starts a process of a client, with new connections.
pub fn boot(world: &mut World, client: ClientId) -> ProcessId {
    let (run, seed) = (world.run(), world.plan.seed);
    let who = world.client(client).boot(run, client, seed);
    world.servers.boot(who);
    for node in world.nodes.ids() {
        world.link(client, node).boot(who.restarts);
    }
    who
}

/// Ends the process of a client: what is left of it has no effect from now on. Messages that it has sent still arrive;
/// those that would have left after its pause do not. Returns the tasks of the process, which the caller must drop.
pub fn kill(world: &mut World, client: ClientId) -> Vec<Task> {
    let now = world.now();
    world.client(client).kill(now);
    for key in world.calls.keys(|call| call.client() == client) {
        if let Some(call) = world.calls.get_mut(key) {
            call.lose_process(now);
        }
    }
    world.servers.kill(client);
    for node in world.nodes.ids() {
        world.link(client, node).forget_connection();
    }
    let keys = world.tasks.keys(|task| task.client() == client);
    let tasks = keys.into_iter().filter_map(|key| world.tasks.remove(key));
    tasks.collect()
}

/// Returns the reading of a process's monotonic clock for a checker. This does not count as a use.
pub fn shown(world: &World, who: ProcessId) -> u64 {
    let client = world.clients.get(who.client);
    client.map_or(0, |client| client.monotonic().read(world.moment(who)))
}

/// Reads the monotonic clock of a process. This counts as a use.
#[inline]
pub fn read_monotonic(world: &mut World, who: ProcessId) -> u64 {
    let at = seam(world, who).unwrap_or(world.now());
    let client = world.clients.get(who.client);
    client.map_or(0, |client| client.monotonic().read(at))
}
