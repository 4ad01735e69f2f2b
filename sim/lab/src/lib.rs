//! The laboratory of Quorlock's simulator: it tests the locks themselves. Its face is the command `quorlock-sim`; this
//! library is for its own tests, and for programs that add [lock algorithms](algorithm) of their own to the command
//! ([`cli::main_with`]).
//!
//! | topic | see |
//! |---|---|
//! | one run, and the lane over simulated TCP | [`simulation`], [`turmoil`] |
//! | clients, and what they record for the checkers | [`client`] |
//! | locks with deliberate flaws | [`model`] |
//! | lock algorithms of your own | [`algorithm`] |
//! | plans in files | [`plan_file`], [`study::source`] |
//! | plans with their expected verdicts, and their pages | [`study::scenario`], [`study::gallery`] |
//! | many runs, and their results | [`study::runs`], [`study::results`] |
//! | plans that are drawn from seeds, and failures | [`study::campaign`], [`study::failure`] |
//! | violations a year of a deployment, with bounds | [`study::rate`] |
//! | every lock against every class of fault | [`study::matrix`] |
//! | smaller plans that still fail | [`study::shrink`] |
//! | plans on real servers | `chaos` |
//! | simulated servers on real ports | [`serve`] |

// The command line, and studies of many runs.
#[cfg(unix)]
mod chaos;
pub mod cli;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzed;
mod redis;
pub mod serve;
pub mod study;

// A single run.
pub mod algorithm;
pub mod client;
pub mod model;
pub mod plan_file;
pub mod simulation;
pub mod turmoil;
