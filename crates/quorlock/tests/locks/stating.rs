//! What requests state about one hold: a request with a larger number never states a shorter lease.
//!
//! Tasks that renew, extend and enter one hold run concurrently: through a hook in the transport in virtual time, and
//! on threads on the real clock.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::operate::Ttl;
use quorlock::transport::{Intercept, Request, Transport};
use quorlock::{EmbeddedNode, Guard, Locks, Name, OwnerId};
use tokio::time::sleep;

const S: fn(u64) -> Duration = Duration::from_secs;

type Hook = Box<dyn FnOnce() + Send>;

/// A node that records the statements, with a hook that runs while a renewal is made.
#[derive(Clone)]
struct Stated {
    node: EmbeddedNode,
    seen: Arc<Mutex<Vec<(OwnerId, u64, u64)>>>,
    while_renewing: Arc<Mutex<Option<Hook>>>,
}

impl Stated {
    fn new(node: EmbeddedNode) -> Self {
        Stated {
            node,
            seen: Arc::default(),
            while_renewing: Arc::default(),
        }
    }

    fn transport(&self) -> Intercept<EmbeddedNode> {
        let stated = self.clone();
        Intercept::new(self.node.clone()).on_call(move |node, request| {
            stated.see(&request);
            if matches!(request, Request::Renew(_)) {
                let hook = stated.while_renewing.lock().unwrap().take();
                if let Some(hook) = hook {
                    hook();
                }
            }
            node.call(request)
        })
    }

    fn see(&self, request: &Request) {
        let mut seen = self.seen.lock().unwrap();
        match request {
            Request::Acquire(ask) => {
                let number = ask.keep.map_or(0, |keep| keep.number);
                seen.push((ask.owner, number, ask.lease.millis()));
            }
            Request::Renew(ask) => seen.extend(ask.claims.iter().map(|claim| {
                let number = claim.keep.map_or(0, |keep| keep.number);
                (claim.owner, number, claim.lease.millis())
            })),
            _ => {}
        }
    }

    /// The number of requests that stated a shorter lease than a request with a smaller number.
    fn shorter(&self) -> usize {
        let mut by_number: BTreeMap<(OwnerId, u64), u64> = BTreeMap::new();
        for (owner, number, lease) in self.seen.lock().unwrap().iter() {
            by_number.insert((*owner, *number), *lease);
        }
        let pairs = by_number.iter().zip(by_number.iter().skip(1));
        let shrink =
            pairs.filter(|((one, before), (other, after))| one.0 == other.0 && after < before);
        shrink.count()
    }
}

fn three() -> Vec<Stated> {
    let node = || Stated::new(EmbeddedNode::new());
    std::iter::repeat_with(node).take(3).collect()
}

fn client(nodes: &[Stated]) -> Locks {
    let builder = Locks::builder().trust_fresh_nodes();
    builder
        .on_nodes(nodes.iter().map(Stated::transport))
        .unwrap()
}

/// Asserts that what `guard` reports of its lease stays true: no other client gets the lock after observing the claim
/// for `span`.
async fn assert_nobody_else_wins(guard: &Guard, nodes: &[Stated], name: &str, span: Duration) {
    let other = client(nodes).lock(name);
    assert!(other.try_acquire().await.unwrap().is_none());
    sleep(span).await;
    assert!(guard.is_held());
    let won = other.try_acquire().await.unwrap();
    assert!(
        won.is_none(),
        "another client won while the first guard is held for {:?} more",
        guard.validity()
    );
}

/// While task A renews a hold for one second, task B extends it to five. B's requests are sent between A's first and
/// A's other requests. These state the shorter lease, and must not have the larger number: nodes would show that
/// lease, and a contender would replace the claim after it.
#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_amid_an_extension_does_not_shorten_it() {
    let nodes = three();
    let guard = client(&nodes)
        .lock("a")
        .lease(S(1))
        .acquire()
        .await
        .unwrap();
    let guard = Arc::new(guard);
    let extending = guard.clone();
    *nodes[0].while_renewing.lock().unwrap() = Some(Box::new(move || {
        let mut extension = Box::pin(extending.extend(S(5)));
        let polled = extension
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(())));
    }));
    guard.extend(S(1)).await.unwrap();
    assert!(S(4) < guard.validity());
    for node in &nodes {
        let version = node.node.version(&Name::new("a").unwrap()).unwrap();
        assert_eq!(
            (version.lease_millis, node.shorter()),
            (5_000, 0),
            "{:?}",
            node.node
        );
    }
    assert_nobody_else_wins(&guard, &nodes, "a", Duration::from_millis(1_013)).await;
}

/// The watchdog's renewals were numbered before an extension, and arrive after it: neither the claim version nor the
/// TTL of the claim goes back.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_comes_after_the_extension_that_it_was_numbered_before_is_harmless() {
    let nodes = three();
    let builder = Locks::builder().trust_fresh_nodes().watchdog_lease(S(1));
    let locks = builder
        .on_nodes(nodes.iter().map(Stated::transport))
        .unwrap();
    let guard = Arc::new(locks.lock("a").acquire().await.unwrap());
    let extending = guard.clone();
    *nodes[0].while_renewing.lock().unwrap() = Some(Box::new(move || {
        let mut extension = Box::pin(extending.extend(S(5)));
        let polled = extension
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(())));
    }));
    while guard.validity() < S(4) {
        sleep(Duration::from_millis(10)).await;
    }
    let name = Name::new("a").unwrap();
    for node in &nodes {
        // The acquire, the renewal and the extension.
        assert_eq!(node.seen.lock().unwrap().len(), 3);
        let version = node.node.version(&name).unwrap();
        assert_eq!(
            (version.lease_millis, node.shorter()),
            (5_000, 0),
            "{:?}",
            node.node
        );
        let (_, left) = node.node.held(&name).unwrap();
        assert!(Ttl::Millis(64_900) < left, "{:?}: {left:?}", node.node);
    }
    assert_nobody_else_wins(&guard, &nodes, "a", Duration::from_millis(1_013)).await;
}

/// On real threads: extensions and re-entries of one hold, again and again.
#[test]
fn threads_that_extend_and_enter_one_hold_never_state_less_than_before() {
    const HOLDS: usize = 20;
    const TIMES: u64 = 3_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let nodes = three();
    let locks = runtime.block_on(async { client(&nodes) });
    for number in 0..HOLDS {
        let lock = locks.lock(format!("a{number}")).lease(S(1));
        let guard = runtime.block_on(lock.acquire()).unwrap();
        std::thread::scope(|threads| {
            // On a busy machine the lease may expire; the recorded requests are complete nevertheless.
            threads.spawn(|| {
                for more in 1..=TIMES {
                    let lease = S(1) + Duration::from_millis(more);
                    let _ = runtime.block_on(guard.extend(lease));
                }
            });
            threads.spawn(|| {
                for _ in 0..TIMES {
                    let _ = runtime.block_on(guard.reenter());
                }
            });
        });
    }
    let shorter: Vec<_> = nodes.iter().map(Stated::shorter).collect();
    assert_eq!(shorter, [0, 0, 0]);
}
