//! Draws a run, as a page for a browser or as a figure for a paper.
//!
//! The figure is drawn once. The page embeds that figure and moves its parts when the reader zooms, so it loads
//! nothing from elsewhere and shows the same picture without scripts.

mod bars;
mod chance;
mod compose;
mod expiry;
mod figure;
mod marks;
mod notes;
mod own;
mod page;
mod picture;
mod scene;
mod slice;

pub use figure::escaped;
pub use picture::{Note, NotePlace, Picture};
pub use slice::{Chance, Necessary, Slice, Twin};

use quorlock_sim_check::run::Run;
use quorlock_sim_world::history::recording::Recording;

/// Returns a complete HTML page about a run. `plan` is the text of the file with which the run is repeated.
#[must_use]
pub fn page(run: &Run, recording: &Recording, title: &str, plan: &str) -> String {
    let repeat = page::by_plan(plan);
    page::write(run, recording, (title, run.plan.seed), &repeat, None)
}

/// Returns a page like [`page`] that ends with the violation, greys what cannot have led to it, and lists what was necessary.
#[must_use]
pub fn page_of_causes(
    run: &Run,
    recording: &Recording,
    title: &str,
    plan: &str,
    slice: &Slice,
) -> String {
    let repeat = page::by_plan(plan);
    page::write(run, recording, (title, run.plan.seed), &repeat, Some(slice))
}

/// Returns the page about a run of a test, with the command that repeats the run.
pub(crate) fn page_of_test(
    run: &Run,
    recording: &Recording,
    (test, seed): (&str, u64),
    command: &str,
) -> String {
    let repeat = page::by_command(command);
    page::write(run, recording, (test, seed), &repeat, None)
}

/// Returns the figure alone, as SVG.
#[must_use]
pub fn figure(run: &Run, recording: &Recording) -> String {
    let scene = scene::Scene::of(run, recording, None, None);
    figure::write(&scene, figure::Use::Alone)
}

/// Returns a part of the figure with notes, as SVG.
#[must_use]
pub fn picture(run: &Run, recording: &Recording, picture: &Picture) -> String {
    let scene = scene::Scene::of(run, recording, Some(picture), None);
    figure::write(&scene, figure::Use::Alone)
}
