//! What a client process does, what stops it, and what starts it.

pub(crate) mod executor;
pub(crate) mod timers;
pub(crate) mod writes;

use quorlock::OwnerId;

use crate::history::HoldId;
use crate::plan::draw::{Draw, Purpose};
use crate::world::World;
use crate::world::client::{Known, Who};
use crate::world::event::What;
use crate::world::link::Line;
use crate::world::task::Task;

/// A process uses a clock, a timer, randomness or the network: at which true time that is for it. Later than now
/// if it is being paused in the middle of what it does; `None` if it is gone.
#[inline]
pub(crate) fn seam(world: &mut World, who: Who) -> Option<u64> {
    let client = world.clients.get(usize::from(who.client))?;
    if client.process != Some(who) {
        return None;
    }
    if client.pauses_inside.is_empty() {
        return Some(world.now.max(client.paused_until));
    }
    count_towards_pause(world, who.client);
    Some(world.moment(who))
}

/// One more use of the seams since pauses in the middle of things are due.
#[cold]
pub(crate) fn count_towards_pause(world: &mut World, client: u16) {
    let now = world.now;
    let state = world.client(client);
    for counted in &mut state.pauses_inside {
        counted.left = counted.left.saturating_sub(1);
    }
    let due = state.pauses_inside.iter().position(|c| c.left == 0);
    if let Some(due) = due {
        let counted = state.pauses_inside.swap_remove(due);
        world.blame(counted.fault);
        pause(world, client, now + counted.lasts);
    }
}

/// Stands still until then.
pub(crate) fn pause(world: &mut World, client: u16, until: u64) {
    let state = world.client(client);
    if state.paused_until < until {
        state.paused_until = until;
        state.pauses += 1;
        let pause = state.pauses;
        world.push(until, What::ResumeClient(client, pause));
    }
}

/// Whether what the process waits for must be dropped now.
pub(crate) fn is_cancelled(world: &mut World, who: Who) -> bool {
    let Some(client) = world.clients.get_mut(usize::from(who.client)) else {
        return false;
    };
    if client.cancels.is_empty() {
        return false;
    }
    for counted in &mut client.cancels {
        counted.left = counted.left.saturating_sub(1);
    }
    let Some(due) = client.cancels.iter().position(|c| c.left == 0) else {
        return false;
    };
    let counted = client.cancels.swap_remove(due);
    world.blame(counted.fault);
    true
}

/// The hold of this owner, which is a new one if it was not seen before.
pub(crate) fn hold_of(world: &mut World, who: Who, owner: OwnerId) -> Known {
    let next = HoldId(world.history.holds);
    let Some(client) = world.clients.get_mut(usize::from(who.client)) else {
        return Known::New(HoldId::NONE);
    };
    let known = client.hold_of(owner, next);
    if known.is_new() {
        world.history.holds += 1;
    }
    known
}

/// Starts it, for the first time or again, with new connections.
pub(crate) fn boot(world: &mut World, client: u16) -> Who {
    let (run, seed) = (world.run, world.plan.seed);
    let state = world.client(client);
    state.paused_until = 0;
    let restarts = state.restarts;
    let who = Who {
        run,
        client,
        restarts,
    };
    state.process = Some(who);
    let stream = u64::from(client) << 16 | u64::from(restarts);
    state.random = Draw::new(seed, Purpose::Client, stream);
    world.servers.boot(who);
    for node in 0..world.nodes.len() {
        let link = world.link(client, u16::try_from(node).unwrap_or(u16::MAX));
        link.line = if restarts == 0 { Line::Up } else { Line::Down };
        link.waiting.clear();
    }
    who
}

/// Ends it: from now on nothing that is left of it has any effect. What it had sent goes on; what was to leave
/// after its pause does not. Returns its tasks, to be dropped.
pub(crate) fn kill(world: &mut World, client: u16) -> Vec<Task> {
    let now = world.now;
    let state = world.client(client);
    state.process = None;
    state.died_at = now;
    state.restarts += 1;
    state.parked.clear();
    state.mail.clear();
    state.deadlines.clear();
    state.pauses_inside.clear();
    state.cancels.clear();
    state.stop = None;
    for key in world.calls.keys(|call| call.client == client) {
        if let Some(call) = world.calls.get_mut(key) {
            call.is_sent_by_the_dead = call.departs <= now;
            call.is_void = now < call.departs;
        }
    }
    world.servers.kill(client);
    for node in 0..world.nodes.len() {
        let link = world.link(client, u16::try_from(node).unwrap_or(u16::MAX));
        link.client_epoch += 1;
    }
    let keys = world.tasks.keys(|task| task.client == client);
    let tasks = keys.into_iter().filter_map(|key| world.tasks.remove(key));
    tasks.collect()
}

#[inline]
pub(crate) fn read_monotonic(world: &mut World, who: Who) -> u64 {
    let at = seam(world, who).unwrap_or(world.now);
    let client = world.clients.get(usize::from(who.client));
    client.map_or(0, |client| client.monotonic.read(at))
}
