//! What these tests share.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quorlock::{EmbeddedNode, Guard, Locks, Name};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep, timeout};

/// A slow round trip to a node.
pub(crate) const LATENCY: Duration = Duration::from_millis(4);

pub(crate) fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Nodes with [`LATENCY`].
pub(crate) fn nodes(many: usize) -> Vec<EmbeddedNode> {
    let node = || EmbeddedNode::new().latency(LATENCY);
    std::iter::repeat_with(node).take(many).collect()
}

/// A new client of these nodes.
pub(crate) fn client(nodes: &[EmbeddedNode]) -> Locks {
    Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.to_vec())
        .unwrap()
}

/// Lets requests and answers in flight arrive.
pub(crate) async fn settle() {
    sleep(millis(50)).await;
}

/// A future that must complete at once, which is long before any lease expires.
#[track_caller]
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match timeout(secs(2), future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: nothing came within two seconds"),
        }
    }
}

/// Asserts that no node has a claim.
#[track_caller]
pub(crate) fn assert_empty(nodes: &[EmbeddedNode]) {
    for node in nodes {
        let names = node.names();
        assert!(names.is_empty(), "{node:?} still has {names:?}");
    }
}

/// The claim of an owner that is no client of the test.
pub(crate) fn foreign() -> Held {
    let owner = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31".parse().unwrap();
    Held::Plain { owner, count: 1 }
}

/// Removes the claim, as a forced release does; the token counter stays.
pub(crate) fn take_away(node: &EmbeddedNode, text: &str) {
    node.put(&name(text), foreign(), Some(Duration::ZERO));
}

/// The owner and count of the claim under a name.
pub(crate) fn claim_on(node: &EmbeddedNode, text: &str) -> Option<(String, u32)> {
    match node.held(&name(text))? {
        (Held::Plain { owner, count }, _) => Some((owner.to_string(), count)),
        other => panic!("{other:?} is no claim"),
    }
}

/// Whether the claim under the name is this guard's, with this count.
pub(crate) fn is_claimed_by(node: &EmbeddedNode, text: &str, guard: &Guard, count: u32) -> bool {
    claim_on(node, text) == Some((guard.owner_id().to_string(), count))
}

/// Polls a future once.
pub(crate) fn poll_once<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

/// Drives a future as its task would, but for at most `polls` polls; `None` if it has not completed by then.
///
/// Other tasks run and time passes between the polls.
pub(crate) async fn poll_times<F: Future + ?Sized>(
    future: &mut Pin<Box<F>>,
    polls: usize,
) -> Option<F::Output> {
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() && left == 0 {
            return Poll::Ready(None);
        }
        polled.map(Some)
    })
    .await
}

/// When an event happened, if it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moment(Arc<Mutex<Option<Instant>>>);

impl Moment {
    pub(crate) fn is_now(&self) {
        *self.0.lock().unwrap() = Some(Instant::now());
    }

    pub(crate) fn when(&self) -> Option<Instant> {
        *self.0.lock().unwrap()
    }
}

/// Notes when a guard's loss is reported.
pub(crate) fn note_loss(guard: &Guard) -> Moment {
    let moment = Moment::default();
    let (lost, noted) = (guard.lost(), moment.clone());
    tokio::spawn(async move {
        lost.await;
        noted.is_now();
    });
    moment
}
