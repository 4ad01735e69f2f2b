//! Differences between readers and writers.

use std::time::{Duration, Instant};

use quorlock_testbed::wait::{BOUND, until};
use tokio::time::timeout;

use super::super::cases::{SOON, wait_for_it};
use super::super::mode::Mode;
use super::super::party::{Party, Released};
use super::super::stage::{LONG, POLL_CAP, Stage, servers};

/// Before this version, Redisson renews the leases of all readers together with its own.
const OTHERS_ARE_LEFT_ALONE_SINCE: (u32, u32) = (4, 4);

/// Redisson wakes no waiter when a writer continues as a reader. Our client wakes the readers.
pub(super) async fn a_writer_that_goes_on_reading(stage: Stage) {
    let took = reader_enters(
        stage.rust(Mode::Write).await,
        stage.jvm(Mode::Read).await,
        &stage,
    );
    let took = took.await;
    assert!(took < SOON, "{took:?}");

    let stage = stage.afresh();
    let took = reader_enters(
        stage.jvm(Mode::Write).await,
        stage.rust(Mode::Read).await,
        &stage,
    );
    let took = took.await;
    assert!(took < POLL_CAP + SOON, "{took:?}");
}

/// Returns how long after the writer became a reader the waiting reader acquired the lock.
async fn reader_enters(mut writer: Party, reader: Party, stage: &Stage) -> Duration {
    let mut reading = writer.also(Mode::Read);
    writer.acquire(LONG).await;
    reading.acquire(LONG).await;
    let watch = reader.watch();
    let waiting = tokio::spawn(wait_for_it(reader));
    stage.until_asleep(&watch).await;
    let begun = Instant::now();
    assert_eq!(writer.release().await, Released::Yes);
    let (mut reader, entered) = timeout(BOUND, waiting).await.unwrap().unwrap();
    assert_eq!(reader.release().await, Released::Yes);
    assert_eq!(reading.release().await, Released::Yes);
    stage.until_free().await;
    entered - begun
}

/// The lease of one reader ends while that of another reader is renewed.
pub(super) async fn a_reader_whose_lease_has_ended(stage: Stage) {
    let lease = Some(Duration::from_secs(1));

    // The dead reader is ours, and the live one theirs.
    let (mut dead, mut living) = (stage.rust(Mode::Read).await, stage.jvm(Mode::Read).await);
    living.acquire(None).await;
    dead.acquire(lease).await;
    if let Party::Rust(party) = dead {
        party.leak();
    }
    if stage.is_before(OTHERS_ARE_LEFT_ALONE_SINCE) {
        let mut seen = left_of_leases(&stage);
        until("the dead one's lease is renewed, too", || {
            let before = std::mem::replace(&mut seen, left_of_leases(&stage));
            before.len() == 2 && before.iter().zip(&seen).all(|(before, seen)| before < seen)
        })
        .await;
    } else {
        until("the dead one's lease ends", || {
            left_of_leases(&stage).len() == 1
        })
        .await;
    }
    assert_eq!(living.release().await, Released::Yes);

    // The dead reader is theirs, and the live one ours.
    let stage = stage.afresh();
    let (mut dead, mut living) = (stage.jvm(Mode::Read).await, stage.rust(Mode::Read).await);
    living.acquire(None).await;
    dead.acquire(lease).await;
    until("the dead one's lease ends", || {
        left_of_leases(&stage).len() == 1
    })
    .await;
    assert_eq!(living.release().await, Released::Yes);
    let mut writer = stage.jvm(Mode::Write).await;
    assert!(writer.try_acquire(LONG).await);
    assert_eq!(writer.release().await, Released::Yes);
}

/// Returns the remaining time of each reader's lease in milliseconds, in a fixed order.
fn left_of_leases(stage: &Stage) -> Vec<i64> {
    let pattern = format!("{{{}}}:*:rwlock_timeout:*", stage.name);
    let mut keys: Vec<String> = servers()[0].command(&["KEYS", &pattern]);
    keys.sort();
    let left = keys.iter().map(|key| servers()[0].command(&["PTTL", key]));
    left.filter(|left: &i64| 0 <= *left).collect()
}
