//! Fair locks taken together with others: what they cost, and what they leave to clients that want only one of them.
#![allow(clippy::print_stdout, reason = "the figures of a run, for --nocapture")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorlock::transport::{Intercept, Transport};
use quorlock::{EmbeddedNode, Lock, Locks, Name};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const ROUND_TRIP: Duration = Duration::from_millis(1);

/// The numbers of requests and subscriptions of one client.
#[derive(Clone, Debug, Default)]
struct Counted {
    calls: Arc<AtomicU64>,
    subscriptions: Arc<AtomicU64>,
}

impl Counted {
    fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.calls), read(&self.subscriptions))
    }

    /// Returns a client of this node whose requests are counted.
    fn client_of(&self, node: &EmbeddedNode) -> Locks {
        let Counted {
            calls,
            subscriptions,
        } = self.clone();
        let node = Intercept::new(node.clone())
            .on_call(move |node, request| {
                calls.fetch_add(1, Ordering::Relaxed);
                node.call(request)
            })
            .on_subscribe(move |node, channel, listener| {
                subscriptions.fetch_add(1, Ordering::Relaxed);
                node.subscribe(channel, listener)
            });
        Locks::on_node(node).unwrap()
    }
}

fn node() -> EmbeddedNode {
    EmbeddedNode::new().latency(ROUND_TRIP)
}

/// A lock of these two names, the first one fair.
fn pair(locks: &Locks, fair: &str, plain: &str) -> Lock {
    locks.fair(fair).and([locks.lock(plain)])
}

/// The requests and subscriptions of a waiter for both locks in four seconds.
async fn cost_of_waiting(locks: &Locks, counted: &Counted, lock: Lock) -> (u64, u64) {
    let waiting = tokio::spawn(async move { lock.acquire().await.unwrap() });
    sleep(4 * SECOND).await;
    let counts = counted.counts();
    waiting.abort();
    sleep(SECOND).await;
    assert_eq!(locks.held(), 0);
    counts
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_held_lock_beside_a_free_fair_one_costs_no_more_than_two_plain_ones() {
    for (fair, plain) in [("a", "b"), ("b", "a")] {
        let node = node();
        let other = Locks::on_node(node.clone()).unwrap();
        let _held = other.lock(plain).acquire().await.unwrap();
        let counted = Counted::default();
        let locks = counted.client_of(&node);
        let both = locks.all(["a", "b"]);
        let of_plain_ones = cost_of_waiting(&locks, &counted, both).await;
        let counted = Counted::default();
        let locks = counted.client_of(&node);
        let both = pair(&locks, fair, plain);
        let of_fair_ones = cost_of_waiting(&locks, &counted, both).await;
        println!("plain {of_plain_ones:?}, with a fair one {of_fair_ones:?}");
        assert!(of_fair_ones.0 <= of_plain_ones.0 && of_fair_ones.1 <= of_plain_ones.1);
        assert!(node.queue(&Name::new(fair).unwrap()).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_held_fair_lock_beside_a_free_one_keeps_its_place_at_no_more_cost() {
    for (fair, plain) in [("a", "b"), ("b", "a")] {
        let node = node();
        let other = Locks::on_node(node.clone()).unwrap();
        let held = other.fair(fair).acquire().await.unwrap();
        let counted = Counted::default();
        let locks = counted.client_of(&node);
        let lock = pair(&locks, fair, plain);
        let both = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(4 * SECOND).await;
        let (calls, subscriptions) = counted.counts();
        println!("{calls} calls, {subscriptions} subscriptions");
        assert!(calls <= 6 && subscriptions <= 2);
        // It is in the queue, and leaves the other lock free.
        assert_eq!(node.queue(&Name::new(fair).unwrap()).len(), 1);
        drop(other.lock(plain).try_acquire().await.unwrap().unwrap());
        // A later waiter is served later.
        let lock = other.fair(fair);
        let later = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(SECOND).await;
        held.release().await.unwrap();
        let both = timeout(SECOND / 10, both).await.unwrap().unwrap();
        assert!(!later.is_finished());
        both.release().await.unwrap();
        drop(timeout(SECOND / 10, later).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_another_lock_leave_the_fair_one_to_others() {
    let node = node();
    let other = Locks::on_node(node.clone()).unwrap();
    let _held = other.lock("b").acquire().await.unwrap();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let lock = pair(&Locks::on_node(node.clone()).unwrap(), "a", "b");
            tokio::spawn(async move { lock.acquire().await.unwrap() })
        })
        .collect();
    let (mut tries, mut granted) = (0, 0);
    let began = Instant::now();
    while began.elapsed() < 8 * SECOND {
        sleep(Duration::from_millis(16)).await;
        tries += 1;
        if let Some(guard) = other.fair("a").try_acquire().await.unwrap() {
            granted += 1;
            guard.release().await.unwrap();
        }
    }
    println!("{granted} of {tries} tries were granted");
    assert!(tries < granted + granted / 20);
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
}

/// How often each of six clients wins in this time, with holds of 10 ms.
async fn wins(time: Duration, lock: impl Fn(&Locks, usize) -> Lock) -> Vec<u64> {
    let node = node();
    let wins: Vec<_> = (0..6).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let clients = wins.iter().enumerate().map(|(i, wins)| {
        let (lock, wins) = (
            lock(&Locks::on_node(node.clone()).unwrap(), i),
            wins.clone(),
        );
        tokio::spawn(async move {
            loop {
                let guard = lock.acquire().await.unwrap();
                wins.fetch_add(1, Ordering::Relaxed);
                sleep(10 * ROUND_TRIP).await;
                guard.release().await.unwrap();
            }
        })
    });
    let clients: Vec<_> = clients.collect();
    sleep(time).await;
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    wins.iter()
        .map(|wins| wins.load(Ordering::Relaxed))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn six_of_them_make_steady_progress() {
    let wins = wins(8 * SECOND, |locks, _| pair(locks, "a", "b")).await;
    println!("{wins:?}");
    assert!(80 <= *wins.iter().min().unwrap(), "{wins:?}");
}

#[tokio::test(start_paused = true)]
async fn two_fair_locks_are_taken_together_however_they_are_named() {
    let wins = wins(60 * SECOND, |locks, i| {
        let mut names = ["a", "b", "c"];
        names.rotate_left(i % 3);
        locks.fair(names[0]).and([locks.fair(names[1])])
    })
    .await;
    println!("{wins:?}");
    // Each pair collides with the two others, and random pauses separate them.
    assert!(1_500 <= wins.iter().sum::<u64>(), "{wins:?}");
    assert!(10 <= *wins.iter().min().unwrap(), "{wins:?}");
}
