//! Clients that are closed, and clients whose runtime ends.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use quorlock::{EmbeddedNode, Guard, Locks, ReleaseError};
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

fn is_not_held(released: Result<(), ReleaseError>) -> bool {
    matches!(released, Err(ReleaseError::NotHeld { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_outlives_its_client_was_not_held_when_it_is_released() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    let again = guard.reenter().await.unwrap();
    locks.close().await;
    assert_eq!(node.names(), []);
    assert!(is_not_held(again.release().await));
    assert!(is_not_held(guard.release().await));
}

/// Its claim still stands, and nothing renews it.
#[test]
fn a_guard_whose_runtime_has_ended_was_not_held_when_it_is_released() {
    let (node, guard): (EmbeddedNode, Guard) = runtime().block_on(async {
        let node = EmbeddedNode::new();
        let locks = Locks::on_node(node.clone()).unwrap();
        (node, locks.lock("a").acquire().await.unwrap())
    });
    assert_eq!(node.names().len(), 1);
    assert!(!guard.is_held());
    assert!(is_not_held(runtime().block_on(guard.release())));
}
