//! Draws a run, as a page for a browser or as a figure for a paper.
//!
//! The figure is drawn once. The page embeds that figure and moves its parts when the reader zooms, so it loads
//! nothing from elsewhere and shows the same picture without scripts.

mod bars;
mod compose;
mod figure;
mod marks;
mod notes;
mod own;
mod page;
mod picture;
mod scene;

pub use picture::{Note, NotePlace, Picture};

use quorlock_sim_check::run::Run;
use quorlock_sim_world::history::recording::Recording;

/// Returns a complete HTML page about a run. `plan` is the text of the file with which the run is repeated.
#[must_use]
pub fn page(run: &Run, recording: &Recording, title: &str, plan: &str) -> String {
    page::write(run, recording, (title, run.plan.seed), &page::by_plan(plan))
}

/// Returns the page about a run of a test, with the command that repeats the run.
pub(crate) fn page_of_test(
    run: &Run,
    recording: &Recording,
    (test, seed): (&str, u64),
    command: &str,
) -> String {
    page::write(run, recording, (test, seed), &page::by_command(command))
}

/// Returns the figure alone, as SVG.
#[must_use]
pub fn figure(run: &Run, recording: &Recording) -> String {
    let scene = scene::Scene::of(run, recording, None);
    figure::write(&scene, figure::Use::Alone)
}

/// Returns a part of the figure with notes, as SVG.
#[must_use]
pub fn picture(run: &Run, recording: &Recording, picture: &Picture) -> String {
    let scene = scene::Scene::of(run, recording, Some(picture));
    figure::write(&scene, figure::Use::Alone)
}
