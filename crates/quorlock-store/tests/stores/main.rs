//! Locks on stores in memory: ordinary ones, ones without a clock, and ones that fail.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod calls;
mod clocks;
mod doubts;
mod failing;
mod locks;
mod losing;
mod records;
mod rules;
mod strange;
mod watching;
mod wrapped;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
