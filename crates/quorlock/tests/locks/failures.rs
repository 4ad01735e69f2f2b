//! How locks behave under failures, on embedded nodes in virtual time.
//!
//! A test named `story_NN_..` shows one of the ways in which lock libraries have failed their users.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test has a clock and tasks of its own, and fails where it does not find what it looks for"
)]

mod acquiring;
mod believing;
mod cancellation;
mod leading;
mod observing;
mod outage;
mod owner;
mod passing_on;
mod releasing;
mod renewing;
mod several;
pub(crate) mod support;
mod unpolled;
mod unreliable;
mod waiting;
mod while_leading;
