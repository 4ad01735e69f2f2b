//! Runs a test under many schedules, for code whose threads `shuttle` interleaves: `tests/threads.sh`.
#![cfg(shuttle)]
#![allow(
    clippy::print_stderr,
    reason = "this is a test's own ground: it reports to the terminal"
)]

mod explore;
mod pace;

pub use explore::{explore, explore_all};
pub use pace::{CLOCK, Pace, draw};
