//! Clients: closing them, the end of their runtimes, and locks over several of them.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

mod closing;
mod closing_try;
mod dead_keeper;
mod parties;
mod same_places;
mod same_places_won;

use std::time::Duration;

use quorlock::{AcquireError, Guard, Lock};
use tokio::task::JoinHandle;
use tokio::time::sleep;

const S: fn(u64) -> Duration = Duration::from_secs;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// An acquisition in a task of its own.
type Acquiring = JoinHandle<Result<Guard, AcquireError>>;

/// Begins both acquisitions, the second one a second after the first, and lets them wait.
async fn wait_in_line(locks: [Lock; 2]) -> [Acquiring; 2] {
    let begin = |lock: Lock| tokio::spawn(async move { lock.acquire().await });
    let [first, second] = locks;
    let leader = begin(first);
    sleep(S(1)).await;
    let follower = begin(second);
    sleep(S(1)).await;
    [leader, follower]
}
