//! The one group of these tests, for one test after the other.

use std::sync::OnceLock;
use std::time::Duration;

use quorlock::transport::RedisConfig;
use quorlock::{Locks, LocksBuilder, RetryPolicy};
use quorlock_tests::sentinels::SentinelGroup;
use tokio::sync::{Mutex, MutexGuard};

/// The group, for this test alone, with all of its processes in place.
pub(crate) async fn group() -> MutexGuard<'static, SentinelGroup> {
    static GROUP: OnceLock<Mutex<SentinelGroup>> = OnceLock::new();
    let group = GROUP.get_or_init(|| Mutex::new(SentinelGroup::start()));
    let mut group = group.lock().await;
    group.mend();
    group
}

/// What fails is found out soon.
pub(crate) fn redis() -> RedisConfig {
    RedisConfig::default()
        .connect_timeout(Duration::from_secs(1))
        .call_timeout(Duration::from_secs(1))
        .ping_interval(Duration::from_millis(200))
}

pub(crate) fn settings() -> LocksBuilder {
    let member_timeout = Duration::from_millis(500);
    Locks::builder()
        .redis(redis())
        .member_timeout(member_timeout)
}

/// A client of the group. Its pauses double without a bound: it is a server's return that ends them.
pub(crate) async fn client(group: &SentinelGroup) -> Locks {
    let hour = Duration::from_secs(3600);
    let retry = RetryPolicy::default().backoff_cap(hour);
    let settings = settings().retry(retry.without_quorum(hour));
    let connected = settings.connect(group.address()).await;
    connected.expect("the group can be used")
}
