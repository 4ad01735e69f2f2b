//! A process that is stopped in the middle of a step, while the world goes on.
//!
//! A pause lets a process do at a later time what it was about to do, with what it had heard by then. Here it stands
//! behind a use of its clocks, timers, randomness or network, with the rest of the step before it. What others do meanwhile has
//! happened when it goes on, and what was sent to it is there, but what it had read is from before.
//!
//! So the rest of the world runs from within the use: the loop of [`go_on_without`] is the one of
//! [`run`](super::run), which has that step on its stack. Nothing of the process is polled, told or dropped until the step has ended,
//! as it may hold a mutex of its own.

use super::{Next, next, resume, start};
use crate::engine::clients::executor::run_ready;
use crate::engine::clients::{self, endless};
use crate::world::event::Event;
use crate::world::id::ProcessId;
use crate::world::stop::Stop;
use crate::world::task::Task;
use crate::world::{World, with};

/// A process uses a clock, a timer, randomness or the network, and is stopped behind that if a stop is due.
#[inline]
pub(crate) fn using<R>(who: ProcessId, what: impl FnOnce(&mut World) -> R) -> R {
    let (used, due) = with(|world| {
        let used = what(world);
        let due = if world.effort.is_too_much() {
            endless::give_up(world, Some(who));
            Due::End
        } else if world.halt.is_armed() {
            count(world, who).map_or(Due::Nothing, Due::Stop)
        } else {
            Due::Nothing
        };
        (used, due)
    });
    match due {
        Due::Nothing => {}
        Due::Stop(stop) => go_on_without(who, stop),
        Due::End => endless::leave(),
    }
    used
}

/// Asks something of the product. Returns the answer, and a true time at which it was right: one at which the process was not
/// stopped yet if it was stopped while it looked, `None` for a process that has ended.
pub(crate) fn ask<R>(who: ProcessId, question: impl FnOnce() -> R) -> (R, Option<u64>) {
    let before = with(|world| first_stop(world, who));
    let answer = question();
    let at = with(|world| {
        let stopped = first_stop(world, who);
        let client = world.clients.get_mut(who.client)?;
        if !client.is(who) {
            return None;
        }
        client.stops().put_first(before.or(stopped));
        Some(stopped.unwrap_or(world.moment(who)))
    });
    (answer, at)
}

/// The true time as of which a process is polled: when it was first stopped since, or now. `None` if it has ended.
pub(crate) fn polled_at(world: &mut World, who: ProcessId) -> Option<u64> {
    let first = first_stop(world, who);
    let client = world.clients.get_mut(who.client)?;
    if !client.is(who) {
        return None;
    }
    client.stops().put_first(first);
    Some(first.unwrap_or(world.moment(who)))
}

fn first_stop(world: &mut World, who: ProcessId) -> Option<u64> {
    let client = world.clients.get_mut(who.client)?;
    client.stops().take_first()
}

/// What comes behind a use.
enum Due {
    Nothing,
    Stop(Stop),
    /// The run does not end by itself.
    End,
}

/// The stop that is due with one more use. It must end before that of another process in whose stop this one runs: that
/// one could not go on any earlier.
#[cold]
fn count(world: &mut World, who: ProcessId) -> Option<Stop> {
    let (now, before) = (world.moment(who), world.halt.until());
    let client = world.clients.get_mut(who.client)?;
    if !client.is(who) {
        return None;
    }
    let stop = client.stops().count(now, before)?;
    if let Some(fault) = stop.fault() {
        world.blame(fault);
    }
    Some(stop)
}

/// Everything but this process goes on for as long as the stop lasts.
fn go_on_without(who: ProcessId, stop: Stop) {
    with(|world| {
        let now = world.moment(who);
        let until = now.saturating_add(stop.lasts());
        world.client(who.client).stops().begin(now);
        world.halt.begin(who.client, until);
        clients::pause(world, who.client, until);
        // Just before the pause ends: until then nothing of the process runs.
        world.push(until - 1, Event::GoesOn);
    });
    // What belongs to the whole run, or to processes in the middle of a step, waits until the step has ended.
    let mut later = Vec::new();
    loop {
        run_ready();
        match with(next) {
            Next::Ready => {}
            Next::GoesOn => break,
            Next::Resume(client) => resume(client),
            Next::Tell(tell) => tell.now(),
            Next::Job(job) => job.now(),
            Next::Boot(client) if with(|world| world.halt.has(client)) => {
                later.push(Event::BootClient(client));
            }
            Next::Boot(client) => start(client),
            Next::Step => later.push(Event::Step),
            Next::Drop(tasks) => {
                let is_standing = |task: &Task| with(|world| world.halt.has(task.client()));
                let (standing, others): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_standing);
                drop(others);
                with(|world| world.halt.bury_later(standing));
                later.push(Event::Bury);
            }
            Next::End => {
                later.push(Event::End);
                break;
            }
        }
    }
    with(|world| {
        world.halt.end();
        for what in later {
            world.push(world.now(), what);
        }
    });
}
