//! Waits that must end when the runtime of the keeper ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use quorlock::transport::{Intercept, Request, Transport};
use quorlock::{AcquireError, EmbeddedNode, Lock, Locks};

/// A node that never answers a release. It notes that one was sent.
fn deaf(asked: &Arc<AtomicBool>) -> Intercept<EmbeddedNode> {
    let asked = asked.clone();
    Intercept::new(EmbeddedNode::new()).on_call(move |node, request| {
        if matches!(request, Request::Release(_)) {
            asked.store(true, Ordering::SeqCst);
            return Box::pin(std::future::pending());
        }
        node.call(request)
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

fn wait_until(what: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Closes the client on the callers' runtime. The keeper's runtime ends while that waits for a release.
fn assert_that_closing_ends(
    closed: &Locks,
    callers: &tokio::runtime::Runtime,
    keepers: tokio::runtime::Runtime,
    asked: &AtomicBool,
) {
    let (done, is_done) = mpsc::channel();
    let closing = closed.clone();
    callers.spawn(async move {
        closing.close().await;
        done.send(()).unwrap();
    });
    // The keeper has sent the release, and closing waits for it.
    wait_until(|| asked.load(Ordering::SeqCst));
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_done.try_recv().is_err());
    keepers.shutdown_timeout(Duration::from_secs(2));
    let ended = is_done.recv_timeout(Duration::from_secs(8));
    assert!(
        ended.is_ok(),
        "close() sleeps on, 8 s after nothing was left to wait for"
    );
}

/// A closes the client on one runtime, and the runtime of its keeper ends meanwhile.
#[test]
fn closing_ends_when_the_keepers_runtime_ends() {
    let (keepers, callers) = (runtime(), runtime());
    let asked = Arc::new(AtomicBool::new(false));
    let locks = keepers.block_on(async { Locks::on_node(deaf(&asked)).unwrap() });
    let guard = callers.block_on(locks.lock("a").acquire()).unwrap();
    assert_that_closing_ends(&locks, &callers, keepers, &asked);
    drop(guard);
}

/// The client has a part in a lock that another client drives, whose runtime ends.
#[test]
fn closing_ends_when_the_runtime_of_another_keeper_ends() {
    let (keepers, callers) = (runtime(), runtime());
    let asked = Arc::new(AtomicBool::new(false));
    let driver = keepers.block_on(async { Locks::on_node(deaf(&asked)).unwrap() });
    let closed = callers.block_on(async { Locks::on_node(deaf(&asked)).unwrap() });
    let both = driver.lock("a").and([closed.lock("b")]);
    let guard = callers.block_on(both.acquire()).unwrap();
    assert_that_closing_ends(&closed, &callers, keepers, &asked);
    drop(guard);
}

/// The keeper's runtime ends while the leader's future is idle: the waiters behind it learn of it.
#[test]
fn waiters_are_told_that_the_keepers_runtime_has_ended() {
    let ended = waited_behind_an_idle_future(|locks| [locks.lock("a"), locks.lock("a")]);
    assert_eq!(ended, Ok(Err(AcquireError::Closed)));
}

/// The same for an acquisition that waits for the turn of its owner.
#[test]
fn waiters_for_a_turn_are_told_that_the_keepers_runtime_has_ended() {
    let ended = waited_behind_an_idle_future(|locks| {
        let owner = locks.owner();
        [owner.lock("a"), owner.lock("a")]
    });
    assert_eq!(ended, Ok(Err(AcquireError::Closed)));
}

/// The outcome of the second lock, when the first one's future is idle and the keeper's runtime ends.
fn waited_behind_an_idle_future(
    pair: impl Fn(&Locks) -> [Lock; 2],
) -> Result<Result<(), AcquireError>, mpsc::RecvTimeoutError> {
    let (keepers, callers) = (runtime(), runtime());
    let node = EmbeddedNode::new();
    let locks = keepers.block_on(async { Locks::on_node(node.clone()).unwrap() });
    let other = callers.block_on(async { Locks::on_node(node).unwrap() });
    let held = callers.block_on(other.lock("a").acquire()).unwrap();
    let (done, is_done) = mpsc::channel();
    let [lock, next] = pair(&locks);
    let mut idle = Box::pin(async move { lock.acquire().await.map(drop) });
    callers.block_on(async {
        // Polled now and then for half a second, and then never again.
        let _ = tokio::time::timeout(Duration::from_millis(500), idle.as_mut()).await;
    });
    callers.spawn(async move {
        done.send(next.acquire().await.map(drop)).unwrap();
    });
    std::thread::sleep(Duration::from_millis(20));
    keepers.shutdown_timeout(Duration::from_secs(2));
    let ended = is_done.recv_timeout(Duration::from_secs(10));
    drop((held, idle));
    ended
}
