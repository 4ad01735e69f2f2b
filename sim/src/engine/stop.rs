//! A process that is stopped at a reading of its clock, while the world goes on.
//!
//! A pause lets a process do at a later time what it was about to do, with what it had heard by then. Here it stands in
//! the middle of a step: what others do meanwhile has happened when it goes on, and replies have come, but the reading
//! is the one from before.

use super::{Next, next, resume};
use crate::engine::clients;
use crate::engine::clients::executor::run_ready;
use crate::world::event::What;
use crate::world::id::Who;
use crate::world::stop::Stop;
use crate::world::{World, with};

/// The clock is read: for how long the process stops now, if it does.
pub(crate) fn count(world: &mut World, who: Who) -> Option<u64> {
    let client = world.clients.get_mut(who.client)?;
    let is_due = client.count_towards_stop();
    if !is_due || world.halt.is_on() || !client.is(who) {
        return None;
    }
    client.take_stop().map(Stop::lasts)
}

/// Everything but this process goes on for this many nanoseconds.
pub(crate) fn go_on_without(who: Who, lasts: u64) {
    with(|world| {
        let until = world.moment(who).saturating_add(lasts.max(1));
        world.halt.begin();
        clients::pause(world, who.client, until);
        // Just before the pause ends: until then nothing of the process runs, and it may be that it holds a mutex.
        world.push(until - 1, What::GoesOn);
    });
    // What belongs to the whole run, or to the process itself, waits until the step has ended.
    let mut later = Vec::new();
    loop {
        run_ready();
        match with(next) {
            Next::Ready => {}
            Next::GoesOn => break,
            Next::Resume(client) => resume(client),
            Next::Tell(tell) => tell.now(),
            Next::Boot(client) => later.push(What::BootClient(client)),
            Next::Step => later.push(What::Step),
            Next::Drop(tasks) => {
                let (own, others): (Vec<_>, Vec<_>) = tasks
                    .into_iter()
                    .partition(|task| task.client() == who.client);
                drop(others);
                with(|world| world.halt.bury_later(own));
                later.push(What::Bury);
            }
            Next::End => {
                later.push(What::End);
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
