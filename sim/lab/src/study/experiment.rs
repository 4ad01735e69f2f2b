//! Studies: one plan whose numbers are varied or drawn, and how often each of its forms breaks a property.
//!
//! A study has a *point* for each combination of what is varied, and at each point a *cell* for each lock. A cell is run with
//! a range of seeds, which is the same for all cells. What is drawn follows from the seed and from the place of the number in
//! the file, so all cells have the same draws, and two locks can be compared seed by seed.

mod axis;
mod cell;
mod drawn;
mod file;
mod outcome;
mod paired;
pub mod picture;
mod points;
mod print;
mod run;

pub use axis::{Axis, Setting};
pub use file::{Contender, Expected, Experiment, PictureKind, StudyError};
pub use outcome::{Bounds, Outcome};
pub use paired::{Paired, compare};
pub use print::{csv, markdown, pairs_csv};
pub use run::{Finished, Sitting};
