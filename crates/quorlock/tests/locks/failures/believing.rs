//! What a holder believes about its lock, and what is true.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quorlock::runtime::{Runtime, Task, Time, Timer, TokioRuntime, WallMillis};
use quorlock::{EmbeddedNode, Locks, Lost};
use quorlock_core::message::Ttl;
use tokio::time::{Instant, sleep, timeout};

use crate::failures::support::{
    client, is_claimed_by, millis, name, nodes, note_loss, secs, settle,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// Holders whose nodes were gone were never notified, and kept working while others had the lock. Here the signal
/// comes from the holder's own clock, before any node frees the claim.
#[tokio::test(start_paused = true)]
async fn story_04_the_loss_is_told_before_a_node_lets_go() {
    for lease in [None, Some(millis(300)), Some(secs(7))] {
        let nodes = nodes(5);
        let locks = client(&nodes);
        let lock = locks.lock("a");
        let lock = match lease {
            Some(lease) => lock.lease(lease),
            None => lock,
        };
        let guard = lock.acquire().await.unwrap();
        sleep(millis(100)).await;
        // All but two become unreachable, just before a renewal would be due.
        for node in &nodes[..3] {
            node.pause();
        }
        let lost = timeout(secs(30), guard.lost()).await.unwrap();
        assert_eq!(lost == Lost::Unreachable, lease.is_none(), "{lost:?}");
        assert!(!guard.is_held());
        for node in &nodes {
            let (_, ttl) = node.held(&name("a")).expect("the claim still stands");
            assert!(Ttl::Millis(0) < ttl);
        }
    }
}

/// A client reported "still acquired" while another one had the lock. Here the first reports the loss, and its
/// signals fire, before the second is granted the lock.
#[tokio::test(start_paused = true)]
async fn story_17_the_old_holder_has_stopped_believing_when_the_new_one_begins() {
    let nodes = nodes(5);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let old = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap();
    let old = old.lock("a").acquire().await.unwrap();
    let told = note_loss(&old);
    sleep(secs(15)).await;
    // The old holder is cut off: its requests arrive, and no answer comes back.
    for way in &ways {
        way.decide(|_| Fate::Lost);
    }
    let new = client(&nodes).lock("a").acquire().await.unwrap();
    assert!(new.is_held() && !old.is_held());
    let told = told.when().expect("the old holder was told");
    assert!(told < Instant::now());
    assert!(old.fencing_token() < new.fencing_token());
    // It is reachable again, and stays lost.
    for way in &ways {
        way.heal();
    }
    sleep(secs(60)).await;
    assert!(new.is_held() && !old.is_held());
    assert!(old.extend(secs(10)).await.is_err());
    assert!(old.release().await.is_err());
    settle().await;
    for node in &nodes {
        assert!(is_claimed_by(node, "a", &new, 1));
    }
}

/// A runtime whose wall clock is set by hand.
#[derive(Debug)]
struct Stepping {
    tokio: TokioRuntime,
    wall: AtomicU64,
}

impl Runtime for Stepping {
    fn now(&self) -> Time {
        self.tokio.now()
    }

    fn wall_clock(&self) -> WallMillis {
        WallMillis(self.wall.load(Ordering::SeqCst))
    }

    fn timer(&self) -> Box<dyn Timer> {
        self.tokio.timer()
    }

    fn spawn(&self, task: Task) {
        self.tokio.spawn(task);
    }

    fn random(&self) -> u64 {
        self.tokio.random()
    }
}

/// A step of the machine's wall clock ended leases, or made them eternal. Here no lease is computed from it, and
/// tokens grow whatever it shows.
#[tokio::test(start_paused = true)]
async fn story_19_a_step_of_the_wall_clock_moves_no_lease() {
    const NOW: u64 = 1_800_000_000_000;
    let runtime = Arc::new(Stepping {
        tokio: TokioRuntime::new(),
        wall: AtomicU64::new(NOW),
    });
    let node = EmbeddedNode::new();
    let builder = Locks::builder().runtime(runtime.clone());
    let locks = builder.on_node(node.clone()).unwrap();
    let other = Locks::on_node(node.clone()).unwrap();
    let mut last = None;
    for wall in [NOW, 0, u64::MAX, NOW - 3_600_000, NOW + 3_600_000] {
        let watched = locks.lock("watched").acquire().await.unwrap();
        let leased = locks.lock("leased").lease(secs(10)).acquire().await;
        let leased = leased.unwrap();
        assert!(last < Some(leased.fencing_token()), "at {wall}");
        last = Some(leased.fencing_token());
        let validity = leased.validity();
        runtime.wall.store(wall, Ordering::SeqCst);
        assert_eq!(leased.validity(), validity);
        let began = Instant::now();
        let lost = timeout(secs(30), leased.lost()).await;
        assert_eq!(lost, Ok(Lost::Expired));
        assert_eq!(began.elapsed().as_millis(), validity.as_millis());
        sleep(secs(100)).await;
        assert!(watched.is_held());
        assert!(other.lock("watched").try_acquire().await.unwrap().is_none());
        watched.release().await.unwrap();
    }
}
