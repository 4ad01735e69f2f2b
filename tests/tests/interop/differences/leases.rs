//! Differences in leases.

use std::time::Duration;

use quorlock_testbed::wait::until;
use quorlock_tests::clients::claim_of;

use super::super::cases::outlive_a_lease;
use super::super::mode::Mode;
use super::super::party::{Released, Watch};
use super::super::stage::{LONG, Stage, locks_at, servers};

/// Since this version, Redisson stops releasing a MultiLock at the first of its locks that is no longer held.
const STOPS_GIVING_BACK_SINCE: (u32, u32) = (3, 28);

/// Before this version (3.25.1), Redisson takes the lease of a MultiLock as milliseconds, whatever its unit.
const UNITS_ARE_READ_SINCE: (u32, u32) = (3, 25);

pub(super) async fn w1_a_shorter_lease_on_entering_again(stage: Stage) {
    let mut theirs = stage.jvm(Mode::Reentrant).await;
    theirs.acquire(LONG).await;
    theirs.acquire(Some(Duration::from_secs(1))).await;
    assert!(stage.left() <= Duration::from_secs(1), "{:?}", stage.left());
    theirs.release().await;
    theirs.release().await;

    let mut ours = stage.rust(Mode::Reentrant).await;
    ours.acquire(LONG).await;
    ours.acquire(Some(Duration::from_secs(1))).await;
    assert!(Duration::from_secs(20) < stage.left(), "{:?}", stage.left());
}

pub(super) async fn w5_a_write_lock_that_is_entered_again(stage: Stage) {
    let mut theirs = stage.jvm(Mode::Write).await;
    for times in 1..=3 {
        theirs.acquire(LONG).await;
        let left = stage.left().as_secs();
        assert!(
            30 * times - 5 < left && left <= 30 * times,
            "{left} s at {times}"
        );
    }
    for _ in 0..3 {
        theirs.release().await;
    }

    let mut ours = stage.rust(Mode::Write).await;
    for _ in 0..3 {
        ours.acquire(LONG).await;
        let left = stage.left().as_secs();
        assert!(25 < left && left <= 30, "{left} s");
    }
}

pub(super) async fn the_lease_of_a_multi_lock(stage: Stage) {
    let words = format!("multi {} {}", stage.name, Mode::Multi.addresses()[0]);
    let jvm = stage.version.jvm();
    let thread = format!("multi-{}", stage.name);
    if stage.is_before(UNITS_ARE_READ_SINCE) {
        // Thirty seconds become 30 ms.
        jvm.ask(&thread, format!("acquire-for-seconds {words} 30"))
            .await
            .unwrap();
        stage.until_free().await;
        return;
    }
    // After a lost round, one second becomes a thousand seconds.
    let ours = locks_at(Mode::Multi.addresses()).await;
    let guard = ours.lock(&stage.name).acquire().await.unwrap();
    let watch = Watch::Jvm(jvm, thread.clone());
    let asking = format!("acquire-for-seconds {words} 1");
    let (acquired, ()) = tokio::join!(jvm.ask(&thread, asking), async {
        stage.until_asleep(&watch).await;
        // A round ends before its lease would.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        guard.release().await.unwrap();
    });
    acquired.unwrap();
    let left = stage.left();
    assert!(Duration::from_secs(900) < left, "{left:?}");
    let mut waiter = stage.rust(Mode::Reentrant).await;
    assert!(!waiter.try_acquire(LONG).await);
    waiter.force_release().await;
}

/// Another client has freed the first of two locks by force.
pub(super) async fn a_multi_lock_of_which_one_lock_is_lost(stage: Stage) {
    let names = Mode::Multi.names(&stage.name);
    let mut other = stage.rust(Mode::Reentrant).await;
    let mut theirs = stage.jvm(Mode::Multi).await;
    theirs.acquire(None).await;
    other.force_release().await;
    assert_eq!(theirs.release().await, Released::NotHeld);
    let claim = || claim_of(&servers()[0], &names[1]);
    if stage.is_before(STOPS_GIVING_BACK_SINCE) {
        until("it is given back", || claim().is_none()).await;
    } else {
        let second = stage.named(&names[1]);
        outlive_a_lease(&second).await;
        assert!(claim().is_some());
        second.rust(Mode::Reentrant).await.force_release().await;
    }

    let mut ours = stage.rust(Mode::Multi).await;
    ours.acquire(None).await;
    other.force_release().await;
    assert_eq!(ours.release().await, Released::NotHeld);
    stage.until_free().await;
    until("it is given back", || claim().is_none()).await;
    assert!(other.try_acquire(LONG).await);
}
