//! Processes that are stopped in the middle of a step while the world continues.
//!
//! A pause delays a whole step: the process acts later, on what it had received before the pause. A stop interrupts
//! the step right after a use of a clock, a timer, randomness or the network. The rest of the step still has to run.
//! When the process continues, other processes have acted and messages to it have arrived, but the values that it has
//! read are out of date.
//!
//! So the rest of the world runs from within that use: `go_on_without` contains the loop of [`run`](super::run),
//! with the stopped step on its stack. Nothing of the process is polled, notified or dropped until the step has ended,
//! because the step may hold a mutex.

use super::{Next, next, resume, start};
use crate::engine::clients::executor::run_ready;
use crate::engine::clients::{self, endless};
use crate::world::event::Event;
use crate::world::id::ProcessId;
use crate::world::stop::Stop;
use crate::world::task::Task;
use crate::world::{World, with};

/// Performs a process's use of a clock, a timer, randomness or the network. If a stop is due, the process is stopped
/// after it.
#[inline]
pub fn using<R>(who: ProcessId, what: impl FnOnce(&mut World) -> R) -> R {
    let (used, due) = with(|world| {
        let used = what(world);
        let due = if world.livelock.is_too_much() {
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

/// Queries the product. Returns the answer and a true time at which it was correct. If the process was stopped during
/// the query, this is the time of the stop. The time is `None` if the process has ended.
pub fn ask<R>(who: ProcessId, question: impl FnOnce() -> R) -> (R, Option<u64>) {
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

/// Returns the true time of the current poll of a process: when the process was first stopped in this step, or now.
/// Returns `None` if the process has ended.
pub fn polled_at(world: &mut World, who: ProcessId) -> Option<u64> {
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

/// The consequence of a use.
enum Due {
    Nothing,
    Stop(Stop),
    /// The run does not end by itself, so it is given up.
    End,
}

/// Counts a use. Returns the stop that is due at it. The stop must end before the stop of another process in which it
/// is nested, because that process could not continue any earlier.
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

/// Runs everything except this process for the length of the stop.
fn go_on_without(who: ProcessId, stop: Stop) {
    with(|world| {
        let now = world.moment(who);
        let until = now.saturating_add(stop.lasts());
        world.client(who.client).stops().begin(now);
        world.halt.begin(who.client, until);
        clients::pause(world, who.client, until);
        world.heals_later(until);
        // The event is due one nanosecond before the pause ends. Until then, nothing of the process runs.
        world.push(until - 1, Event::GoesOn);
    });
    // Events of the whole run, or of processes in the middle of a step, wait until the step has ended.
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
