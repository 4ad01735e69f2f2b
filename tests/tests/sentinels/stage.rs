//! The group that these tests share, one test at a time.

use std::sync::OnceLock;

use quorlock::Locks;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_tests::clients::patient_client;
use tokio::sync::{Mutex, MutexGuard};

/// Returns the group for this test alone, with all of its processes running.
pub(crate) async fn group() -> MutexGuard<'static, SentinelGroup> {
    static GROUP: OnceLock<Mutex<SentinelGroup>> = OnceLock::new();
    let group = GROUP.get_or_init(|| Mutex::new(SentinelGroup::start()));
    let group = group.lock().await;
    group.mend();
    group
}

/// Returns a client of the group.
pub(crate) async fn client(group: &SentinelGroup) -> Locks {
    patient_client(&group.address()).await
}
