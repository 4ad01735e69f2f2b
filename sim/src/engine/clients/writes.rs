//! Reads and writes of the resource that a lock protects.

use crate::engine::clients;
use crate::history::{HoldId, NameId, Written};
use crate::world::World;
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::store::{Asked, Write};

fn latency(world: &mut World) -> u64 {
    let network = &world.plan.network;
    let (least, most) = (network.least.as_nanos(), network.most.as_nanos());
    let draw = world.store.latency.as_mut();
    draw.map_or(least, |draw| draw.between(least, most))
}

pub(crate) fn start(
    world: &mut World,
    who: Who,
    hold: HoldId,
    name: NameId,
    asked: Asked,
    token: Option<u64>,
) -> Key<Write> {
    let Some(departs) = clients::seam(world, who) else {
        return Key::NONE;
    };
    let at = departs + latency(world);
    let key = world.writes.insert(Write {
        who,
        hold,
        name,
        asked,
        token,
        departs,
        answer: None,
        is_answered: false,
        is_dropped: false,
        waker: None,
    });
    world.push(at, What::Write(key));
    key
}

/// A read or a write comes to the store. One whose process died before it really left does not.
pub(crate) fn arrive(world: &mut World, key: Key<Write>) {
    let now = world.now;
    let Some(write) = world.writes.get_mut(key) else {
        return;
    };
    let died_at = world
        .clients
        .get(usize::from(write.who.client))
        .filter(|client| client.restarts != write.who.restarts)
        .map(|client| client.died_at);
    if died_at.is_some_and(|died_at| died_at < write.departs) {
        world.writes.remove(key);
        return;
    }
    let accepted = world.store.accept(write.name, write.token);
    if write.asked != Asked::Read {
        world.history.writes.push(Written {
            process: write.who.process(),
            hold: write.hold,
            name: write.name,
            at: now,
            token: write.token,
            read_at: write.asked.read_at(),
            accepted,
        });
    }
    write.answer = Some((accepted, now));
    let at = now + latency(world);
    world.push(at, What::Written(key));
}

pub(crate) fn finish(world: &mut World, key: Key<Write>) {
    if let Some(write) = world.writes.get_mut(key) {
        write.is_answered = true;
        if let Some(waker) = &write.waker {
            waker.wake_by_ref();
        }
        if write.is_dropped {
            world.writes.remove(key);
        }
    }
}
