//! Timers: when they are due, as clocks run.

use std::task::{Context, Poll};

use crate::engine::clients;
use crate::world::World;
use crate::world::client::Who;
use crate::world::event::What;
use crate::world::slab::Key;
use crate::world::timer::Alarm;

pub(crate) fn poll(
    world: &mut World,
    who: Who,
    key: &mut Key<Alarm>,
    cx: &Context<'_>,
    deadline: u64,
) -> Poll<()> {
    let Some(at) = clients::seam(world, who) else {
        return Poll::Pending;
    };
    let Some(client) = world.clients.get(usize::from(who.client)) else {
        return Poll::Pending;
    };
    if deadline <= client.monotonic.read(at) {
        return Poll::Ready(());
    }
    if deadline == u64::MAX {
        return Poll::Pending;
    }
    if *key == Key::NONE {
        *key = world.alarms.insert(Alarm {
            client: who.client,
            deadline,
            entry_at: u64::MAX,
            entry: 0,
            waker: cx.waker().clone(),
        });
    }
    let Some(alarm) = world.alarms.get_mut(*key) else {
        return Poll::Pending;
    };
    alarm.waker.clone_from(cx.waker());
    if alarm.deadline == deadline && alarm.entry_at != u64::MAX {
        return Poll::Pending;
    }
    alarm.deadline = deadline;
    let due = client.monotonic.when(at, deadline);
    if due < alarm.entry_at {
        alarm.entry = alarm.entry.wrapping_add(1);
        alarm.entry_at = due;
        world.events.push(due, What::Alarm(*key, alarm.entry));
    }
    Poll::Pending
}

/// An entry of a timer has come up. It may have been set to later meanwhile.
pub(crate) fn ring(world: &mut World, key: Key<Alarm>, entry: u32) {
    let now = world.now;
    let Some(alarm) = world.alarms.get_mut(key).filter(|a| a.entry == entry) else {
        return;
    };
    alarm.entry_at = u64::MAX;
    let Some(client) = world.clients.get(usize::from(alarm.client)) else {
        return;
    };
    if alarm.deadline <= client.monotonic.read(now) {
        alarm.waker.wake_by_ref();
        return;
    }
    let due = client.monotonic.when(now, alarm.deadline);
    alarm.entry_at = due;
    world.push(due, What::Alarm(key, entry));
}

/// The clock of a client has changed: sets its timers anew, `later` by this.
pub(crate) fn set_anew(world: &mut World, client: u16, later: u64) {
    let now = world.now;
    for key in world.alarms.keys(|alarm| alarm.client == client) {
        let Some(state) = world.clients.get(usize::from(client)) else {
            return;
        };
        let Some(alarm) = world.alarms.get_mut(key) else {
            continue;
        };
        if alarm.entry_at == u64::MAX {
            continue;
        }
        let due = state.monotonic.when(now, alarm.deadline) + later;
        alarm.entry = alarm.entry.wrapping_add(1);
        alarm.entry_at = due;
        let entry = alarm.entry;
        world.push(due, What::Alarm(key, entry));
    }
}
