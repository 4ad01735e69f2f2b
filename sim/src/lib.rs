//! Runs the production locks of Quorlock against failing nodes, networks, clocks and processes, deterministically and
//! fast.
//!
//! A seed determines a plan: an explicit list of everything that goes wrong. A plan runs in one thread, in virtual
//! time, with the unchanged code of the crate `quorlock`. Checkers then examine the history of the run.
//!
//! | topic | see |
//! |---|---|
//! | everything that a run depends on | [`quorlock_sim_plan`] |
//! | what goes wrong | [`quorlock_sim_plan::fault`] |
//! | what happened | [`quorlock_sim_world::history`] |
//! | what must hold | [`quorlock_sim_check`] |
//! | a Redis server without sockets or clocks | the crate `redis-sim` |
//! | simulated servers on real ports | [`serve`] |
//! | locks with deliberate flaws | [`quorlock_sim_plan::variant`], [`model`] |
//! | runs over simulated TCP | [`sockets`] |
//! | tests of your own code | [`property_test`], [`resource`], the attribute [`test`](macro@test) |
//! | your own clients | [`simulation`], [`context`] |
//! | plans drawn from a seed | [`quorlock_sim_plan::generator`] |
//! | plans in files | [`plan_file`], [`source`] |
//! | what an observer can see of a run | [`quorlock_sim_world::history::recording`] |
//! | a run as a picture | [`report`] |
//! | plans with their expected verdicts | [`scenario`] |
//! | many runs | [`campaign`], [`part`], [`failure`] |
//! | every lock against every class of fault | [`matrix`] |
//! | smaller plans that still fail | [`shrink`] |

// Without the feature `cli`, the items that only the command uses are dead code.
#![cfg_attr(not(feature = "cli"), allow(dead_code))]

// The command line, and studies of many runs.
#[cfg(all(unix, feature = "chaos"))]
mod chaos;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(all(any(test, fuzzing), feature = "cli"))]
#[doc(hidden)]
pub mod fuzzed;
pub mod property_test;
#[cfg(any(feature = "serve", feature = "turmoil"))]
mod redis;
pub mod report;
#[cfg(feature = "serve")]
pub mod serve;
mod study;

// A single run.
mod client;
#[cfg(feature = "locks")]
pub mod model;
pub mod resource;
pub mod simulation;
#[cfg(feature = "turmoil")]
pub mod turmoil;

// Properties, histories and plans.
#[cfg(feature = "locks")]
pub mod plan_file;

#[cfg(feature = "turmoil")]
pub use crate::turmoil as sockets;
#[cfg(feature = "locks")]
pub use client::subject;
pub use client::{assertion, context};
pub use quorlock_sim_macros::test;
pub use quorlock_sim_plan as plan;
pub use quorlock_sim_world::history;
pub use study::shrink;
#[cfg(feature = "campaigns")]
pub use study::{campaign, export, matrix, part, scenario};
#[cfg(feature = "locks")]
pub use study::{failure, source};
