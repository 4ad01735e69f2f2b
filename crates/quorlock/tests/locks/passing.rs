//! Holds that pass from one caller of a client to the next without a release.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use quorlock::transport::{Intercept, Request, Transport};
use quorlock::{AcquireError, EmbeddedNode, Guard, Lock, Locks, Lost, Name, ReleaseError, Token};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(9);

/// How long a caller has to take the hold that it was given.
const UNTAKEN: Duration = Duration::from_millis(10);

fn nodes(many: usize) -> Vec<EmbeddedNode> {
    (0..many).map(|_| EmbeddedNode::new()).collect()
}

fn client(nodes: &[EmbeddedNode]) -> Locks {
    let builder = Locks::builder().watchdog_lease(LEASE);
    match nodes {
        [one] => builder.on_node(one.clone()).unwrap(),
        all => builder
            .trust_fresh_nodes()
            .on_nodes(all.iter().cloned())
            .unwrap(),
    }
}

/// Begins to wait for a lock, and returns when it is in line.
async fn waiting(lock: &Lock) -> JoinHandle<Guard> {
    let lock = lock.clone();
    let waiting = tokio::spawn(async move { lock.acquire().await.unwrap() });
    for _ in 0..20 {
        yield_now().await;
    }
    waiting
}

/// Uses the lock for a moment, alone. Returns the token.
async fn work(lock: Lock, inside: Arc<AtomicU32>) -> Token {
    let guard = lock.acquire().await.unwrap();
    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
    let token = guard.fencing_token();
    guard.release().await.unwrap();
    token
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_cost_the_nodes_little() {
    for (many, most) in [(1, 2.0), (5, 4.0)] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let inside = Arc::new(AtomicU32::new(0));
        let executed = || nodes.iter().map(EmbeddedNode::executed).sum::<u64>();
        let before = executed();
        let tasks = (0..50).map(|_| tokio::spawn(work(locks.lock("a"), inside.clone())));
        let tasks: Vec<_> = tasks.collect();
        let mut tokens = Vec::new();
        for task in tasks {
            tokens.push(task.await.unwrap());
        }
        // They were served in order, each with a larger token.
        assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
        let each = (executed() - before) as f64 / 50.0;
        assert!(each <= most, "{each} requests a hold on {many} nodes");
        assert_eq!(locks.held(), 0);
        assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_hold_is_one_of_its_own() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let lock = locks.lock("a");
        let first = lock.acquire().await.unwrap();
        let next = waiting(&lock).await;
        let (owner, token, lost) = (first.owner_id(), first.fencing_token(), first.lost());
        first.release().await.unwrap();
        assert_eq!(lost.await, Lost::Released);
        let next = next.await.unwrap();
        assert_eq!(next.owner_id(), owner, "it was released and acquired");
        assert!(token < next.fencing_token());
        assert_eq!(next.lost().now_or_never(), None);
        // It is renewed.
        sleep(4 * LEASE).await;
        assert!(next.is_held());
        assert_eq!(locks.held(), 1);
        let token = next.fencing_token();
        next.release().await.unwrap();
        let other = client(&nodes).lock("a").try_acquire().await.unwrap();
        assert!(token < other.unwrap().fencing_token());
    }
}

/// Counters as after a loss: whatever majority grants next has a token above those that were reserved.
#[tokio::test(start_paused = true)]
async fn tokens_grow_over_uneven_counters() {
    let nodes = nodes(3);
    let name = Name::new("a").unwrap();
    let ahead = Token(1 << 45);
    nodes[0].put_token(&name, ahead, None);
    let locks = client(&nodes);
    let lock = locks.lock("a");
    let mut last = Token(0);
    let mut guard = lock.acquire().await.unwrap();
    for _ in 0..30 {
        let next = waiting(&lock).await;
        assert!(last < guard.fencing_token());
        last = guard.fencing_token();
        guard.release().await.unwrap();
        guard = next.await.unwrap();
    }
    guard.release().await.unwrap();
    for left_out in 0..3 {
        let others = (0..3).filter(|node| *node != left_out);
        let others: Vec<_> = others.map(|node| nodes[node].stored_token(&name)).collect();
        assert!(
            others.iter().any(|stored| Some(last) <= *stored),
            "{others:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_gone_does_not_pass_on() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let locks = Locks::builder().watchdog_lease(LEASE).watch_claims(false);
        let locks = match many {
            1 => locks.on_node(nodes[0].clone()).unwrap(),
            _ => locks
                .trust_fresh_nodes()
                .on_nodes(nodes.iter().cloned())
                .unwrap(),
        };
        let lock = locks.lock("a");
        let guard = lock.acquire().await.unwrap();
        let owner = guard.owner_id();
        let next = waiting(&lock).await;
        for node in &nodes {
            node.flush();
        }
        let released = guard.release().await;
        assert!(
            matches!(released, Err(ReleaseError::NotHeld { .. })),
            "{released:?}"
        );
        assert_ne!(next.await.unwrap().owner_id(), owner);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_passes_it_on() {
    let nodes = nodes(1);
    let locks = client(&nodes);
    let lock = locks.lock("a");
    for rest in [0, 1] {
        let guard = lock.acquire().await.unwrap();
        let mut gives_up = Box::pin(lock.acquire());
        assert!(gives_up.as_mut().now_or_never().is_none());
        let mut others = Vec::new();
        for _ in 0..rest {
            others.push(waiting(&lock).await);
        }
        guard.release().await.unwrap();
        drop(gives_up);
        for other in others {
            other.await.unwrap().release().await.unwrap();
        }
        let free = client(&nodes).lock("a").wait(Duration::from_millis(5));
        free.acquire().await.unwrap().release().await.unwrap();
    }
}

/// The task of a caller may be blocked.
#[tokio::test(start_paused = true)]
async fn a_caller_that_is_not_polled_keeps_no_other_client_out() {
    let nodes = nodes(1);
    let locks = client(&nodes);
    let lock = locks.lock("a");
    let guard = lock.acquire().await.unwrap();
    let mut blocked = Box::pin(lock.acquire());
    assert!(blocked.as_mut().now_or_never().is_none());
    guard.release().await.unwrap();
    let began = Instant::now();
    let other = client(&nodes).lock("a").acquire().await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(20));
    assert!(blocked.as_mut().now_or_never().is_none());
    other.release().await.unwrap();
    blocked.await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_releases_what_no_caller_has_taken() {
    let nodes = nodes(1);
    let locks = client(&nodes);
    let lock = locks.lock("a");
    let guard = lock.acquire().await.unwrap();
    let mut blocked = Box::pin(lock.acquire());
    assert!(blocked.as_mut().now_or_never().is_none());
    guard.release().await.unwrap();
    locks.close().await;
    let other = client(&nodes).lock("a").try_acquire().await.unwrap();
    assert!(other.is_some());
    assert!(blocked.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_must_be_released_does_not_pass_on() {
    let nodes = nodes(1);
    let bounded = Locks::builder().watchdog_lease(LEASE).max_hold(2 * LEASE);
    let bounded = bounded.on_node(nodes[0].clone()).unwrap();
    let locks = client(&nodes);
    let stays = locks.lock("stays").at_least(Duration::from_secs(1));
    let fixed = locks.lock("fixed").lease(LEASE);
    for lock in [
        fixed,
        bounded.lock("bounded"),
        locks.fair("fair"),
        locks.write("write"),
        stays,
    ] {
        let guard = lock.acquire().await.unwrap();
        let owner = guard.owner_id();
        let next = waiting(&lock).await;
        guard.release().await.unwrap();
        assert_ne!(next.await.unwrap().owner_id(), owner, "{lock:?}");
    }
    // Two guards: the first one ends nothing.
    let lock = locks.lock("twice");
    let outer = lock.acquire().await.unwrap();
    let inner = outer.reenter().await.unwrap();
    let next = waiting(&lock).await;
    outer.release().await.unwrap();
    assert!(inner.is_held());
    assert!(!next.is_finished());
    inner.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
}

/// The future of an extension may outlive its guard, and its end must not be taken for news of the next hold.
#[tokio::test(start_paused = true)]
async fn an_extension_of_the_hold_before_does_not_stop_renewals() {
    for many in [1, 3] {
        let locks = client(&nodes(many));
        let lock = locks.lock("a");
        let first = lock.acquire().await.unwrap();
        let owner = first.owner_id();
        let extending = first.extending(LEASE).unwrap();
        let next = waiting(&lock).await;
        first.release().await.unwrap();
        let next = next.await.unwrap();
        assert_eq!(next.owner_id(), owner);
        drop(extending);
        sleep(4 * LEASE).await;
        assert!(next.is_held());
        locks.close().await;
        assert!(!next.is_held());
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

type Waiting = Pin<Box<dyn Future<Output = Result<Guard, AcquireError>> + Send>>;

/// Between two threads: a waiter is given the hold while it is polled, so that another one that comes in between finds neither the hold
/// nor an attempt.
#[tokio::test(start_paused = true)]
async fn a_waiter_behind_one_that_is_given_a_hold_in_its_poll_is_woken() {
    type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;
    for comes_again in [true, false] {
        let during: Arc<Hook> = Arc::default();
        let hook = during.clone();
        let node = Intercept::new(EmbeddedNode::new()).on_call(move |node, request| {
            let hook = match request {
                Request::Acquire(_) => hook.lock().unwrap().take(),
                _ => None,
            };
            if let Some(hook) = hook {
                hook();
            }
            node.call(request)
        });
        let locks = Locks::builder().watchdog_lease(LEASE);
        let locks = locks.on_node(node).unwrap();
        let lock = locks.lock("a");
        // Tokens are reserved, so that the next pass is made in one poll.
        let first = lock.acquire().await.unwrap();
        let next = waiting(&lock).await;
        first.release().await.unwrap();
        let guard = next.await.unwrap();
        let woken = Arc::new(Woken::default());
        let behind: Arc<Mutex<Option<Waiting>>> = Arc::default();
        {
            let (lock, woken, behind) = (lock.clone(), woken.clone(), behind.clone());
            let hook = move || {
                let released = guard.release().now_or_never();
                released.expect("it passes on without a request").unwrap();
                let mut waiting: Waiting = Box::pin(async move { lock.acquire().await });
                let waker = Waker::from(woken);
                let polled = waiting.as_mut().poll(&mut Context::from_waker(&waker));
                assert!(polled.is_pending());
                *behind.lock().unwrap() = Some(waiting);
            };
            *during.lock().unwrap() = Some(Box::new(hook));
        }
        let mut given = Box::pin(lock.acquire());
        assert!(given.as_mut().now_or_never().is_none());
        if comes_again {
            let given = given.as_mut().await.unwrap();
            sleep(2 * UNTAKEN).await;
            given.release().await.unwrap();
        }
        sleep(LEASE).await;
        assert!(woken.0.load(Ordering::SeqCst), "it waits for a free name");
        let behind = behind.lock().unwrap().take().unwrap();
        behind.await.unwrap().release().await.unwrap();
    }
}
