//! An owner that lost one of its holds.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use std::time::Duration;

use quorlock::{EmbeddedNode, Locks};
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);

fn client() -> Locks {
    Locks::on_node(EmbeddedNode::new().latency(Duration::from_millis(1))).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_writer_reads_again_whose_reading_was_lost() {
    let locks = client();
    let owner = locks.owner();
    let writer = owner.write("a").acquire().await.unwrap();
    let lost = owner.read("a").lease(SECOND).acquire().await.unwrap();
    sleep(2 * SECOND).await;
    assert!(!lost.is_held());
    let reader = timeout(60 * SECOND, owner.read("a").acquire()).await;
    let reader = reader.expect("it waits for itself").unwrap();
    assert!(reader.is_held() && writer.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_reader_writes_whose_reading_was_lost() {
    let locks = client();
    let owner = locks.owner();
    let lost = owner.read("a").lease(SECOND).acquire().await.unwrap();
    sleep(2 * SECOND).await;
    assert!(!lost.is_held());
    let writer = owner.write("a").wait(SECOND).acquire().await;
    assert!(writer.is_ok(), "{writer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_hold_does_not_overlap() {
    let locks = client();
    let owner = locks.owner();
    let lost = owner.lock("a").lease(SECOND).acquire().await.unwrap();
    sleep(2 * SECOND).await;
    assert!(!lost.is_held());
    let both = owner.all(["a", "b"]).wait(SECOND).acquire().await;
    assert!(both.is_ok(), "{both:?}");
}

#[tokio::test(start_paused = true)]
async fn two_that_enter_at_once_what_the_owner_holds_both_enter() {
    let locks = client();
    let owner = locks.owner();
    let _held = owner.lock("a").acquire().await.unwrap();
    let lock = owner.lock("a");
    let (one, other) = tokio::join!(lock.try_acquire(), lock.try_acquire());
    assert!(one.unwrap().is_some());
    assert!(other.unwrap().is_some(), "held by its own owner");
}
