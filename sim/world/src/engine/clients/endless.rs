//! Runs that do not end by themselves, because a client or the events continue while hardly any time passes.

use std::panic::resume_unwind;

use crate::history::Endless;
use crate::world::World;
use crate::world::id::ProcessId;
use crate::world::with;

/// The panic payload that unwinds a step of the product when that step does not end.
#[derive(Debug)]
pub struct GivenUp;

/// Ends the run: nothing more happens, and the checkers report it.
pub fn give_up(world: &mut World, who: Option<ProcessId>) {
    let at = world.now();
    let process = who.map(ProcessId::process);
    world.history.endless.get_or_insert(Endless { at, process });
}

#[inline]
pub(crate) fn is_given_up(world: &World) -> bool {
    world.history.endless.is_some()
}

/// Unwinds the current step, which keeps using seams and does not end.
pub fn leave() {
    // A drop during the unwinding may use a seam and reach this point again.
    if std::thread::panicking() {
        return;
    }
    if cfg!(panic = "abort") {
        say_and_exit();
    }
    resume_unwind(Box::new(GivenUp));
}

/// Reports the run and exits, for builds in which panics do not unwind.
#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "the process cannot continue, and no caller learns of it"
)]
fn say_and_exit() -> ! {
    let (seed, now) = with(|world| (world.plan.seed, world.now()));
    eprintln!("error: the run of seed {seed} does not end: a client keeps running at {now} ns");
    std::process::exit(3);
}
