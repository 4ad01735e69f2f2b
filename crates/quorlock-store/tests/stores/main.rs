//! Locks on stores that need no server: in memory, ordinary ones, ones without a clock and ones that fail; and in a file.

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
#[cfg(feature = "sqlite")]
mod sqlite;
mod strange;
#[cfg(feature = "sqlite")]
#[path = "../support/mod.rs"]
mod support;
mod watching;
mod wrapped;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
