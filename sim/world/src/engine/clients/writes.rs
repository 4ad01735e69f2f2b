//! Reads and writes of the resource that a lock protects.

use crate::engine::clients;
use crate::history::{HoldId, NameId};
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::ProcessId;
use crate::world::slab::Key;
use crate::world::store::{StoreRequest, Write};

fn latency(world: &mut World) -> u64 {
    let network = &world.plan.network;
    let (min, max) = (network.min.as_nanos(), network.max.as_nanos());
    world.store.latency(min, max)
}

/// Sends a read or a write to the store.
pub fn start(
    world: &mut World,
    who: ProcessId,
    hold: HoldId,
    name: NameId,
    asked: StoreRequest,
    token: Option<u64>,
) -> Key<Write> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let at = departs + latency(world);
    let write = Write::new(who, hold, name, asked, token, departs);
    let key = world.writes.insert(write);
    world.push(at, Event::Write(key));
    key
}

/// Delivers a read or a write to the store. It is dropped if its process died before it was actually sent.
pub fn arrive(world: &mut World, key: Key<Write>) {
    let now = world.now();
    let Some(write) = world.writes.get_mut(key) else {
        return;
    };
    let who = write.who();
    let client = world.clients.get(who.client);
    if client.is_some_and(|client| client.died_before(who, write.departs())) {
        world.writes.remove(key);
        return;
    }
    let accepted = world.store.take(write, now);
    world.history.writes.extend(write.written(now, accepted));
    let at = now + latency(world);
    world.push(at, Event::Written(key));
}

/// Delivers the answer of the store.
pub fn finish(world: &mut World, key: Key<Write>) {
    let is_over = world.writes.get_mut(key).is_some_and(Write::finish);
    if is_over {
        world.writes.remove(key);
    }
}

/// Records that the client no longer waits for the answer.
pub(crate) fn abandon(world: &mut World, key: Key<Write>) {
    let is_over = world.writes.get_mut(key).is_some_and(Write::abandon);
    if is_over {
        world.writes.remove(key);
    }
}
