//! The locks on embedded nodes, and what the library does with bad input, clocks, threads and events.

#![allow(
    clippy::disallowed_macros,
    reason = "loops of users around `select!` are among what is tested"
)]

mod bad_input;
mod blocking;
mod byte_names;
mod claim_loss;
mod clients;
mod clocks;
#[cfg(feature = "tracing")]
mod events;
mod extremes;
mod failures;
mod fair;
mod fair_together;
mod handing_over;
mod holding;
mod inherited;
mod longest_lease;
mod loops;
mod many_holds;
mod many_names;
mod margin;
#[cfg(feature = "metrics")]
mod metrics;
mod operators;
mod owner_at_once;
mod owner_lost;
mod passing;
mod policies;
mod races;
mod read_write;
mod ready;
mod refused_together;
mod semaphore;
mod stating;
mod staying;
mod stopped;
mod tries;
mod trust;
