//! A run as a picture: one page for a browser, or one figure for a paper.
//!
//! The picture is made once, as a figure. The page has the same figure in it and moves its parts when the reader zooms,
//! so it needs nothing from elsewhere, and says the same without scripts.

mod bars;
mod compose;
mod figure;
mod marks;
mod own;
mod page;
mod scene;
pub mod story;

use crate::history::recording::Recording;
use crate::simulation::Run;

/// A whole page, in HTML.
#[must_use]
pub fn page(run: &Run, recording: &Recording, title: &str) -> String {
    page::write(run, recording, title, &page::by_plan(run))
}

/// The same of a test, with the command that runs it again.
pub(crate) fn page_of_test(run: &Run, recording: &Recording, test: &str, command: &str) -> String {
    page::write(run, recording, test, &page::by_command(command))
}

/// Only the figure, in SVG.
#[must_use]
pub fn figure(run: &Run, recording: &Recording) -> String {
    let scene = scene::Scene::of(run, recording);
    figure::write(&scene, figure::Use::Alone)
}
