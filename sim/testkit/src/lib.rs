//! Tests your own code against failing nodes, networks, clocks and processes, deterministically and fast, with the
//! production locks of Quorlock.
//!
//! A seed determines a plan: an explicit list of everything that goes wrong. A plan runs in one thread, in virtual
//! time, with the unchanged code of the crate `quorlock`. Checkers then examine the history of the run.
//!
//! | topic | see |
//! |---|---|
//! | tests of your own code | the attribute [`test`](macro@test), [`property_test`] |
//! | what a client is given | [`context`] |
//! | properties, and marks on the time line | [`always!`], [`sometimes!`], [`eventually!`], [`mark!`], [`assertion`] |
//! | what your code writes to | [`resource`] |
//! | everything that a run depends on | [`plan`] |
//! | what happened | [`history`] |
//! | smaller plans that still fail | [`shrink`] |
//! | a run as a picture | [`report`] |
//! | runs without a test | [`simulation`] |

pub mod assertion;
pub mod context;
pub mod property_test;
pub mod report;
pub mod resource;
pub mod shrink;
pub mod simulation;

pub use quorlock_sim_macros::test;
pub use quorlock_sim_plan as plan;
pub use quorlock_sim_world::history;
