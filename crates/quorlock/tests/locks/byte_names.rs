//! Names that are not UTF-8, on embedded nodes, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, Locks, Name};

/// Displayed like the other name, but a different one.
const BYTES: &[u8] = b"orders/\xff";
const TEXT: &str = r"orders/\xff";

#[tokio::test(start_paused = true)]
async fn a_name_of_bytes_is_locked_as_any_other() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock(BYTES).acquire().await.unwrap();
    assert_eq!(node.names(), [Name::new(BYTES).unwrap()]);
    assert!(locks.lock(BYTES).try_acquire().await.unwrap().is_none());
    assert_eq!(guard.fencing_token_of(BYTES), Some(guard.fencing_token()));
    assert_eq!(guard.fencing_token_of(TEXT), None);
    guard.release().await.unwrap();
    let both = locks.all([BYTES, b"stock/\xfe"]).acquire().await.unwrap();
    both.release().await.unwrap();
}

/// Waiters for the same lock share a queue. Names that are displayed alike must not share one.
#[tokio::test(start_paused = true)]
async fn names_that_read_the_same_are_two_locks() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node).unwrap();
    let owner = locks.owner();
    assert_eq!(Name::new(BYTES).unwrap().to_string(), TEXT);
    let one = owner.lock(BYTES).acquire().await.unwrap();
    let other = owner.lock(TEXT).acquire().await.unwrap();
    assert_eq!((one.hold_count(), other.hold_count()), (1, 1));
    one.release().await.unwrap();
    assert!(other.is_held());
    // A waiter for one of the names is not given the other.
    let held = locks.lock(BYTES).acquire().await.unwrap();
    other.release().await.unwrap();
    let wait = Duration::from_secs(1);
    let (text, bytes) = (locks.lock(TEXT).wait(wait), locks.lock(BYTES).wait(wait));
    let (free, waits) = tokio::join!(text.acquire(), bytes.acquire());
    assert!(free.is_ok());
    let error = waits.unwrap_err();
    assert!(matches!(error, AcquireError::Contended { .. }), "{error}");
    assert!(error.to_string().contains(TEXT), "{error}");
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_prefix_of_bytes_stands_before_the_name() {
    let node = EmbeddedNode::new();
    let builder = Locks::builder().key_prefix(b"\xfe:");
    let locks = builder.on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert_eq!(node.names(), [Name::new(b"\xfe:a").unwrap()]);
    assert_eq!(
        guard.fencing_token_of(b"\xfe:a"),
        guard.fencing_token_of("a")
    );
}
