//! The world of a simulated run: the production locks of Quorlock against failing nodes, networks, clocks and processes,
//! in one thread and in virtual time.
//!
//! | topic | see |
//! |---|---|
//! | the state of a run | [`world`] |
//! | what happens next | [`engine`] |
//! | how the product uses the simulator | [`seam`] |
//! | what happened | [`history`] |
//!
//! A part of the crate `quorlock-sim`, without a promise of stability of its own.

pub mod engine;
pub mod history;
pub mod seam;
pub mod world;
