//! Locks of very many names.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, ConfigError, EmbeddedNode, Lock, Locks};
use tokio::time::sleep;

fn names(many: usize) -> impl Iterator<Item = String> {
    (0..many).map(|number| format!("name:{number}"))
}

/// Each name takes one request to acquire and one to release. The renewals in between are in batches of a hundred.
#[tokio::test(start_paused = true)]
async fn a_lock_of_the_most_names_is_acquired_kept_and_released() {
    let most = Lock::MOST_NAMES;
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let guard = locks.all(names(most)).acquire().await.unwrap();
    assert_eq!((node.names().len(), node.executed()), (most, most as u64));
    sleep(Duration::from_millis(10_500)).await;
    assert!(Duration::from_secs(29) < guard.validity());
    let renewals = node.executed() - most as u64;
    assert_eq!(renewals, most as u64 / 100);
    guard.release().await.unwrap();
    assert_eq!(node.names(), []);
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_more_names_is_refused() {
    let locks = Locks::on_node(EmbeddedNode::new()).unwrap();
    let many = Lock::MOST_NAMES + 1;
    let refused = ConfigError::TooManyNames {
        names: many,
        most: Lock::MOST_NAMES,
    };
    let mut single = names(many).map(|name| locks.lock(name));
    let joined = single.next().unwrap().and(single);
    for lock in [
        locks.all(names(many)),
        locks.owner().all(names(many)),
        joined,
    ] {
        let error = lock.try_acquire().await.unwrap_err();
        assert_eq!(error, AcquireError::Config(refused.clone()));
    }
}
