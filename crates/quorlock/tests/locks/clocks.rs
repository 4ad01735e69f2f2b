//! Locks over several clients, each with its own clock: observations on one client's nodes are never compared with
//! the clock of another client.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorlock::runtime::{Runtime, Task, Time, Timer, TokioRuntime, WallMillis};
use quorlock::{EmbeddedNode, Locks, LocksBuilder};
use tokio::time::{Instant, sleep};

const S: fn(u64) -> Duration = Duration::from_secs;
/// The longest lease of a watched node, and its drift allowance.
const WATCHED: Duration = Duration::from_millis(60_602);

/// Tokio's clock with another zero: it shows this much more.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    tokio: TokioRuntime,
    by: Duration,
}

impl Runtime for Ahead {
    fn now(&self) -> Time {
        self.tokio.now() + self.by
    }

    fn wall_clock(&self) -> WallMillis {
        self.tokio.wall_clock()
    }

    fn timer(&self) -> Box<dyn Timer> {
        Box::new(AheadTimer(self.tokio.timer(), self.by))
    }

    fn spawn(&self, task: Task) {
        self.tokio.spawn(task);
    }

    fn random(&self) -> u64 {
        self.tokio.random()
    }
}

struct AheadTimer(Box<dyn Timer>, Duration);

impl Timer for AheadTimer {
    fn poll_until(&mut self, cx: &mut Context<'_>, at: Time) -> Poll<()> {
        let at = if at == Time::NEVER { at } else { at - self.1 };
        self.0.poll_until(cx, at)
    }
}

/// How the clocks of two clients of one process differ.
#[derive(Clone, Copy, Debug)]
enum Clocks {
    /// The second client was made 1000 s after the first.
    FirstIsOlder,
    /// The first client was made 1000 s after the second.
    SecondIsOlder,
    /// Custom runtimes: the first client's clock shows 1000 s more.
    FirstIsAhead,
    /// Custom runtimes: the second client's clock shows 1000 s more.
    SecondIsAhead,
}

const ALL: [Clocks; 4] = [
    Clocks::FirstIsOlder,
    Clocks::SecondIsOlder,
    Clocks::FirstIsAhead,
    Clocks::SecondIsAhead,
];

/// Two clients whose clocks differ.
async fn two(
    clocks: Clocks,
    first: impl Fn(LocksBuilder) -> Locks,
    second: impl Fn(LocksBuilder) -> Locks,
) -> (Locks, Locks) {
    let by = |by: Duration| {
        let tokio = TokioRuntime::new();
        Locks::builder().runtime(Arc::new(Ahead { tokio, by }))
    };
    let (zero, ahead) = (Duration::ZERO, S(1_000));
    match clocks {
        Clocks::FirstIsOlder => {
            let first = first(Locks::builder());
            sleep(S(1_000)).await;
            (first, second(Locks::builder()))
        }
        Clocks::SecondIsOlder => {
            let second = second(Locks::builder());
            sleep(S(1_000)).await;
            (first(Locks::builder()), second)
        }
        Clocks::FirstIsAhead => (first(by(ahead)), second(by(zero))),
        Clocks::SecondIsAhead => (first(by(zero)), second(by(ahead))),
    }
}

/// A holder renews its claim on a node with a margin. The lock of both clients observes the claim, and so does a lock
/// of the one client alone.
#[tokio::test(start_paused = true)]
async fn a_live_claim_is_not_replaced_whatever_the_clocks_of_the_clients_show() {
    for clocks in ALL {
        for first_turn in [0, 1] {
            let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
            let margin = |builder: LocksBuilder| builder.clock_margin(S(60));
            let holder = margin(Locks::builder()).on_node(b.clone()).unwrap();
            let (first, second) = two(
                clocks,
                |builder| builder.on_node(a.clone()).unwrap(),
                |builder| margin(builder).on_node(b.clone()).unwrap(),
            )
            .await;
            let held = holder.lock("b").acquire().await.unwrap();
            let both = first.lock("a").and([second.lock("b")]);
            let alone = second.lock("b");
            let turns = [&alone, &both];
            for turn in 0..40 {
                let lock = turns[(turn + first_turn) % 2];
                let won = lock.try_acquire().await.unwrap();
                let is_won = won.is_some();
                assert!(
                    !(is_won && held.is_held()),
                    "{clocks:?}: turn {turn} took the claim {:?} before its holder's validity ended",
                    held.validity()
                );
                sleep(S(1)).await;
            }
            assert!(held.is_held());
        }
    }
}

/// The nodes of the second client have lost their markers. They are quarantined for one longest lease, and no longer.
#[tokio::test(start_paused = true)]
async fn a_new_node_is_watched_for_as_long_whatever_the_clocks_of_the_clients_show() {
    for clocks in ALL {
        let (a, b) = (EmbeddedNode::new(), EmbeddedNode::new());
        let c = EmbeddedNode::new();
        let (first, second) = two(
            clocks,
            |builder| builder.on_node(a.clone()).unwrap(),
            |builder| builder.on_nodes([b.clone(), c.clone()]).unwrap(),
        )
        .await;
        // An older client has watched them before.
        for node in [&b, &c] {
            node.flush();
        }
        let began = Instant::now();
        let both = first.lock("a").and([second.lock("b")]);
        let guard = both.acquire().await.unwrap();
        let waited = began.elapsed();
        assert!(WATCHED <= waited, "{clocks:?}: trusted after {waited:?}");
        assert!(waited < WATCHED + S(3), "{clocks:?}: waited for {waited:?}");
        assert!(guard.is_held());
    }
}

/// Clients of one process show the same time, however much older one of them is.
#[tokio::test(start_paused = true)]
async fn all_clocks_of_the_runtime_have_one_zero() {
    let old = TokioRuntime::new();
    sleep(S(1_000)).await;
    assert_eq!(old.now(), TokioRuntime::new().now());
}
