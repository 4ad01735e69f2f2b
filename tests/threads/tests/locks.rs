//! Whole locks over embedded nodes, with several tasks on several threads.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::time::Duration;

use quorlock::{Guard, Lock, Locks, Name};
use quorlock_threads::{Beliefs, Pace, Remote, Way, World, explore};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn nodes(world: &World, way: Way, many: usize) -> Vec<Remote> {
    let node = || Remote::new(world, way);
    std::iter::repeat_with(node).take(many).collect()
}

fn client(world: &World, nodes: &[Remote]) -> Locks {
    let builder = Locks::builder()
        .runtime(world.runtime())
        .trust_fresh_nodes();
    builder.on_nodes(nodes.to_vec()).unwrap()
}

/// Nothing of the product is left, in memory or on nodes.
async fn assert_nothing_left(world: &World, nodes: &[Remote]) {
    world.quiet().await;
    for node in nodes {
        assert_eq!(node.node.names(), Vec::<Name>::new(), "{node:?}");
    }
}

/// Wins, asks itself a few times whether it holds, and releases.
async fn work(beliefs: &Beliefs, lock: &Lock) {
    let asked = beliefs.asked();
    let guard: Guard = lock.acquire().await.unwrap();
    let holding = beliefs.won(asked, &guard);
    for _ in 0..3 {
        assert!(holding.ask());
    }
    guard.release().await.unwrap();
}

/// Two tasks of one client and one of another want one lock: each has it, one after another, in no time.
#[test]
fn waiters_on_threads_of_their_own_take_turns() {
    explore(
        "waiters_on_threads_of_their_own_take_turns",
        Pace::Idle,
        async |world| {
            let nodes = nodes(&world, Way::Far, 3);
            let (one, other) = (client(&world, &nodes), client(&world, &nodes));
            let beliefs = Beliefs::default();
            let mut threads = Vec::new();
            for lock in [one.lock("a"), one.lock("a"), other.lock("a")] {
                let beliefs = beliefs.clone();
                threads.push(world.thread(async move { work(&beliefs, &lock).await }));
            }
            for thread in threads {
                thread.await.unwrap();
            }
            let took = MS(world.millis());
            assert!(took < MS(300), "a wake-up is lost: {took:?}");
            drop((one, other));
            assert_nothing_left(&world, &nodes).await;
        },
    );
}
