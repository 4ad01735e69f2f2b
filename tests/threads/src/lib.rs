//! The locks under a scheduler that chooses how their threads interleave: `tests/threads.sh`.
//!
//! When compiled with `--cfg shuttle`, the product uses the mutexes and atomics of `shuttle`. Each use is a step,
//! after which any thread may run. `explore` runs a test under many schedules. The same schedule always leads to the
//! same run.
#![cfg(shuttle)]
#![allow(
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "this is a test's own ground: it reports to the terminal and fails by panicking"
)]

mod abandon;
mod beliefs;
mod mailbox;
mod remote;
mod shelf;
mod world;

pub use abandon::abandon;
pub use beliefs::{Beliefs, Holding};
pub use quorlock_explore::Pace;
pub use remote::{Remote, Way};
pub use shelf::Shelf;
pub use world::{World, explore};
