//! The one group of these tests, for one test after the other.

use std::sync::OnceLock;

use quorlock::Locks;
use quorlock_tests::clients::patient_client;
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

/// A client of the group.
pub(crate) async fn client(group: &SentinelGroup) -> Locks {
    patient_client(&group.address()).await
}
