//! Real time, for servers that real clients use.
#![expect(
    clippy::disallowed_methods,
    reason = "these servers are for clients of the real world"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the wall clock, in nanoseconds since 1970.
pub(super) fn wall_nanos() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) async fn sleep_until(at: Instant) {
    tokio::time::sleep_until(at).await;
}
