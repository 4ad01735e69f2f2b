//! Whole locks over embedded nodes, with several tasks on several threads.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod closing;
mod holding;
mod owners;
mod stores;
mod waiting;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use quorlock::{Locks, LocksBuilder, Name};
use quorlock_threads::{Remote, Way, World};
use shuttle::future::JoinHandle;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn nodes(world: &World, way: Way, many: usize) -> Vec<Remote> {
    let node = || Remote::new(world, way);
    std::iter::repeat_with(node).take(many).collect()
}

fn builder(world: &World) -> LocksBuilder {
    Locks::builder()
        .runtime(world.runtime())
        .trust_fresh_nodes()
}

fn client(world: &World, nodes: &[Remote]) -> Locks {
    builder(world)
        .on_nodes(nodes.iter().map(Remote::transport))
        .unwrap()
}

async fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.await.unwrap();
    }
}

/// Checks that nothing of the product is left, in memory or on nodes.
async fn assert_nothing_left(world: &World, nodes: &[Remote]) {
    world.quiet().await;
    assert_nothing_stands(nodes);
}

fn assert_nothing_stands(nodes: &[Remote]) {
    for node in nodes {
        assert_eq!(node.node.names(), Vec::<Name>::new(), "{node:?}");
    }
}

/// Checks that the test took at most this long on the clock of the world. That clock stands still while a thread can
/// run.
fn assert_took(world: &World, at_most: u64) {
    let took = world.millis();
    assert!(took <= at_most, "a wake-up is lost: it took {took} ms");
}

/// Polls a future a number of times, ignores its wake-ups for a while, and then continues.
async fn absent<F: Future>(
    world: &World,
    mut future: std::pin::Pin<&mut F>,
    polls: u64,
    span: Duration,
) -> F::Output {
    let mut left = polls;
    let early = poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    });
    if let Some(output) = early.await {
        return output;
    }
    world.sleep(span).await;
    future.await
}
