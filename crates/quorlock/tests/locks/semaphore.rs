//! Semaphores on embedded nodes, in virtual time.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test has a clock and tasks of its own, and fails where it does not find what it looks for"
)]

mod bad_input;
mod holding;
mod trying;
mod waiting;

use std::time::Duration;

use futures_util::future::join_all;
use quorlock::{Guard, Semaphore};
use tokio::time::timeout;

use crate::failures::support::{LATENCY, settle};

/// A few round trips. No poll comes as early as that.
const SOON: Duration = LATENCY.saturating_mul(20);

/// The name of the only lock of a guard.
fn name_of(guard: &Guard) -> String {
    guard.names().map(ToString::to_string).collect()
}

/// Acquires every permit, and returns them in order.
async fn all_of(semaphore: &Semaphore) -> Vec<Guard> {
    let acquired = (0..semaphore.permits()).map(|_| semaphore.acquire());
    let guards = timeout(SOON, join_all(acquired)).await.unwrap();
    let mut guards: Vec<_> = guards.into_iter().map(Result::unwrap).collect();
    guards.sort_by_key(name_of);
    // What was granted beside them is released.
    settle().await;
    guards
}

async fn release(guards: impl IntoIterator<Item = Guard>) {
    let released = guards.into_iter().map(Guard::release);
    join_all(released)
        .await
        .into_iter()
        .for_each(Result::unwrap);
}
