//! The groups that these tests share, each used by one test at a time.

use quorlock::Locks;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_tests::clients::patient_client;
use quorlock_tests::pool::{Borrowed, Pool};

/// The number of groups, and of tests at once.
pub(crate) const GROUPS: usize = 2;

/// Returns a group for this test alone, with all of its processes running.
pub(crate) async fn group() -> Borrowed<SentinelGroup> {
    static POOL: Pool<SentinelGroup, GROUPS> = Pool::new(SentinelGroup::start);
    let group = POOL.borrow().await;
    group.mend();
    group
}

/// Returns a client of the group.
pub(crate) async fn client(group: &SentinelGroup) -> Locks {
    patient_client(&group.address()).await
}
