//! Futures that are dropped at every await point.
#![allow(
    clippy::async_yields_async,
    reason = "what is made in each world is a future, to be cut off"
)]

use std::future::Future;
use std::pin::Pin;

use quorlock::{EmbeddedNode, Lock, Locks, Name, Token};
use tokio::time::sleep;

use crate::failures::support::{
    assert_empty, at_once, client, is_claimed_by, millis, nodes, poll_times, secs, settle,
};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Nodes, a client that drops a future, and a client that acquires the lock afterwards.
struct World {
    nodes: Vec<EmbeddedNode>,
    locks: Locks,
    other: Locks,
}

impl World {
    fn of(many: usize) -> Self {
        let nodes = nodes(many);
        World {
            locks: client(&nodes),
            other: client(&nodes),
            nodes,
        }
    }

    /// The other client holds the lock, and releases it a little later.
    async fn contend(&self) {
        let held = self.other.all(["a", "b"]).acquire().await.unwrap();
        tokio::spawn(async move {
            sleep(millis(25)).await;
            held.release().await.unwrap();
        });
    }

    async fn assert_nothing_stays(&self) {
        for node in &self.nodes {
            node.resume();
        }
        settle().await;
        assert_eq!(self.locks.held(), 0);
        assert_empty(&self.nodes);
        let lock = self.other.all(["a", "b"]);
        drop(at_once(lock.acquire()).await.unwrap());
    }
}

/// Drops the future of `begin` after zero polls, after one, after two and so on, until it completes. Each time nothing
/// of it may be left. Returns how many polls it took.
async fn cut_off_at_every_poll<T>(many: usize, begin: impl AsyncFn(&World) -> Boxed<T>) -> usize {
    let mut polls = 0;
    loop {
        let world = World::of(many);
        let mut future = begin(&world).await;
        let output = poll_times(&mut future, polls).await;
        let is_over = output.is_some();
        drop((future, output));
        world.assert_nothing_stays().await;
        if is_over {
            return polls;
        }
        polls += 1;
    }
}

/// Cancelling an acquisition left a key that no client knew of, and everyone waited for its lease. Here a dropped
/// acquisition's possible grants are released in the background: on one node and several, alone and with other waiters.
#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_acquisition_leaves_no_key() {
    for many in [1, 3, 5] {
        for is_contended in [false, true] {
            let polls = cut_off_at_every_poll(many, async |world| {
                if is_contended {
                    world.contend().await;
                }
                let lock = world.locks.lock("a");
                Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
            });
            assert!(usize::from(is_contended) < polls.await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_try_leaves_no_key() {
    for many in [1, 3, 5] {
        for is_contended in [false, true] {
            let polls = cut_off_at_every_poll(many, async |world| {
                if is_contended {
                    world.contend().await;
                }
                let lock = world.locks.lock("a");
                Box::pin(async move { lock.try_acquire().await.unwrap() }) as Boxed<_>
            });
            assert!(1 < polls.await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_acquisition_of_several_leaves_no_key() {
    for many in [1, 3] {
        for is_contended in [false, true] {
            cut_off_at_every_poll(many, async |world| {
                if is_contended {
                    world.contend().await;
                }
                let lock = world.locks.all(["b", "a"]);
                Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_acquisition_leaves_no_key_on_a_stopped_node() {
    for names in [&["a"][..], &["a", "b"]] {
        cut_off_at_every_poll(3, async |world| {
            world.nodes[0].pause();
            let lock = world.locks.all(names);
            Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
        })
        .await;
    }
}

/// The members have different tokens for one name, so the round has another step at which it can be dropped.
#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_acquisition_leaves_no_key_while_tokens_differ() {
    let polls = cut_off_at_every_poll(3, async |world| {
        // Far above the wall clock, so that this node alone determines the next token.
        let ahead = Token(1 << 52);
        world.nodes[0].put_token(&Name::new("a").unwrap(), ahead, None);
        let lock = world.locks.lock("a");
        Box::pin(async move { lock.acquire().await.unwrap() }) as Boxed<_>
    });
    assert!(2 < polls.await);
}

/// Cancelling a release lost the only proof of who held the lock, and it stayed locked. Here the keeper takes over
/// the release.
#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_release_goes_on() {
    for many in [1, 5] {
        for is_stopped in [false, true] {
            cut_off_at_every_poll(many, async |world| {
                let guard = world.locks.lock("a").acquire().await.unwrap();
                if is_stopped {
                    world.nodes[0].pause();
                }
                Box::pin(async move { guard.release().await }) as Boxed<_>
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn story_14_dropped_work_under_a_lock_frees_it() {
    for many in [1, 5] {
        cut_off_at_every_poll(many, async |world| {
            let guard = world.locks.all(["a", "b"]).acquire().await;
            let work = async {
                sleep(millis(3)).await;
                sleep(millis(3)).await;
            };
            Box::pin(guard.unwrap().while_held(async |_| work.await)) as Boxed<_>
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn story_14_a_dropped_client_leaves_no_key() {
    for many in [1, 5] {
        for is_contended in [false, true] {
            cut_off_at_every_poll(many, async |world| {
                if is_contended {
                    world.contend().await;
                }
                let locks = client(&world.nodes);
                Box::pin(async move {
                    let outer = locks.lock("a").acquire().await.unwrap();
                    let inner = outer.reenter().await.unwrap();
                    inner.extend(secs(40)).await.unwrap();
                    let other = locks.lock("b").acquire().await.unwrap();
                    outer.release().await.unwrap();
                    other.release().await.unwrap();
                    inner.release().await.unwrap();
                    locks.close().await;
                }) as Boxed<_>
            })
            .await;
        }
    }
}

/// A runtime closes its client, and ends in the middle of it.
#[tokio::test(start_paused = true)]
async fn a_dropped_close_goes_on() {
    cut_off_at_every_poll(3, async |world| {
        let locks = world.locks.clone();
        let guard = locks.lock("a").acquire().await.unwrap();
        let waiting = locks.lock("a");
        tokio::spawn(async move { waiting.acquire().await.map(drop) });
        Box::pin(async move {
            locks.close().await;
            drop(guard);
        }) as Boxed<_>
    })
    .await;
}

/// A dropped re-entry or extension leaves the hold as it was.
#[tokio::test(start_paused = true)]
async fn a_dropped_reentry_or_extension_leaves_the_hold_as_it_was() {
    for many in [1, 5] {
        for polls in 0..4 {
            let nodes = nodes(many);
            let guard = client(&nodes).lock("a").acquire().await.unwrap();
            let mut reentering = Box::pin(guard.reenter());
            let _ = poll_times(&mut reentering, polls).await;
            drop(reentering);
            let mut extending = Box::pin(guard.extend(secs(40)));
            let _ = poll_times(&mut extending, polls).await;
            drop(extending);
            settle().await;
            assert_eq!(guard.hold_count(), 1);
            assert!(guard.is_held());
            sleep(secs(100)).await;
            assert!(nodes.iter().all(|node| is_claimed_by(node, "a", &guard, 1)));
            guard.release().await.unwrap();
            settle().await;
            assert_empty(&nodes);
        }
    }
}

/// Many acquisitions of one process, each dropped after its own number of polls: the remaining ones get their turn.
#[tokio::test(start_paused = true)]
async fn dropped_waiters_do_not_hold_up_those_that_stay() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let lock: Lock = client(&nodes).lock("a");
        let mut staying = Vec::new();
        for polls in 0..30 {
            let dropped = lock.clone();
            tokio::spawn(async move {
                let mut future = Box::pin(async move { dropped.acquire().await });
                drop(poll_times(&mut future, polls % 7).await);
            });
            let lock = lock.clone();
            staying.push(tokio::spawn(async move {
                let guard = lock.acquire().await.unwrap();
                sleep(millis(1)).await;
                guard.release().await.unwrap();
            }));
        }
        for task in staying {
            at_once(task).await.unwrap();
        }
        settle().await;
        assert_empty(&nodes);
    }
}
