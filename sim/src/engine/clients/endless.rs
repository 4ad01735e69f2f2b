//! A run that does not end by itself: a client or the events go on and on while hardly any time passes.

use std::panic::resume_unwind;

use crate::history::Endless;
use crate::world::World;
use crate::world::id::ProcessId;
use crate::world::with;

/// Unwinds a step of the product that would not end.
pub(crate) struct GivenUp;

/// The run is put an end to: nothing goes on any more, and the checkers say so.
pub(crate) fn give_up(world: &mut World, who: Option<ProcessId>) {
    let at = world.now();
    let process = who.map(ProcessId::process);
    world.history.endless.get_or_insert(Endless { at, process });
}

#[inline]
pub(crate) fn is_given_up(world: &World) -> bool {
    world.history.endless.is_some()
}

/// Leaves the step on whose stack this is: it uses clocks, timers, randomness or the network and never ends.
pub(crate) fn leave() {
    // What is dropped on the way out may come here again.
    if std::thread::panicking() {
        return;
    }
    if cfg!(panic = "abort") {
        say_and_exit();
    }
    resume_unwind(Box::new(GivenUp));
}

/// Where nothing is unwound, the run can only be named.
#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "the process cannot go on, and no caller hears of it"
)]
fn say_and_exit() -> ! {
    let (seed, now) = with(|world| (world.plan.seed, world.now()));
    eprintln!("error: the run of seed {seed} does not end: a client goes on and on at {now} ns");
    std::process::exit(3);
}
