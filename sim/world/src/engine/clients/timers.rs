//! Timers, and when they are due by the clocks of processes.

use std::task::{Context, Poll};

use crate::engine::clients;
use crate::world::World;
use crate::world::event::Event;
use crate::world::id::{ClientId, ProcessId};
use crate::world::slab::Key;
use crate::world::timer::Alarm;

/// Returns whether the clock of a process has reached the deadline. If it has not, the task is woken when it does.
pub fn poll(
    world: &mut World,
    who: ProcessId,
    key: &mut Key<Alarm>,
    cx: &Context<'_>,
    deadline: u64,
) -> Poll<()> {
    let Some(at) = clients::seam(world, who) else {
        return Poll::Pending;
    };
    let Some(client) = world.clients.get(who.client) else {
        return Poll::Pending;
    };
    if deadline <= client.monotonic().read(at) {
        return Poll::Ready(());
    }
    if deadline == u64::MAX {
        return Poll::Pending;
    }
    if *key == Key::NONE {
        let alarm = Alarm::new(who.client, deadline, cx.waker().clone());
        *key = world.alarms.insert(alarm);
    }
    let Some(alarm) = world.alarms.get_mut(*key) else {
        return Poll::Pending;
    };
    if alarm.set(deadline, cx) {
        let due = client.monotonic().when(at, deadline);
        if alarm.needs_entry(due) {
            let entry = alarm.begin_entry(due);
            world.events.push(due, Event::Alarm(*key, entry));
        }
    }
    Poll::Pending
}

/// Handles an entry of a timer that is due. The timer may have been set to a later time in the meantime.
pub fn ring(world: &mut World, key: Key<Alarm>, entry: u32) {
    let now = world.now();
    let Some(alarm) = world.alarms.get_mut(key) else {
        return;
    };
    if !alarm.end_entry(entry) {
        return;
    }
    let Some(client) = world.clients.get(alarm.client()) else {
        return;
    };
    if alarm.deadline() <= client.monotonic().read(now) {
        alarm.ring();
        return;
    }
    let due = client.monotonic().when(now, alarm.deadline());
    alarm.repeat_entry(due);
    world.events.push(due, Event::Alarm(key, entry));
}

/// Reschedules the timers of a client whose clock has changed. Each one is due `later` nanoseconds later.
pub(crate) fn set_anew(world: &mut World, client: ClientId, later: u64) {
    let now = world.now();
    let Some(state) = world.clients.get(client) else {
        return;
    };
    for key in world.alarms.keys(|alarm| alarm.client() == client) {
        if let Some(alarm) = world.alarms.get_mut(key)
            && alarm.has_entry()
        {
            let due = state.monotonic().when(now, alarm.deadline()) + later;
            let entry = alarm.begin_entry(due);
            world.events.push(due, Event::Alarm(key, entry));
        }
    }
}
