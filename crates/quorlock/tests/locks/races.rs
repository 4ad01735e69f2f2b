//! Races and outages that a review of the code found, on embedded nodes in virtual time.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::sync::Arc;
use std::time::Duration;

use quorlock::transport::{
    AcquireReply, Call, Channel, Freshness, Listener, ReleaseReply, RenewReply, Reply, Request,
    ServerNumber, Slot, Subscription, Transport, UnfitName, Witness,
};
use quorlock::{ConfirmError, EmbeddedNode, Locks, Lost, Name, ReleaseError, Token};
use quorlock_core::marker::{Figures, MarkerState, Nonce, Process, Shown, ShownMarker};
use quorlock_core::node::Held;
use tokio::time::{Instant, sleep, timeout};

const MS: fn(u64) -> Duration = Duration::from_millis;
const S: fn(u64) -> Duration = Duration::from_secs;

fn foreign() -> Held {
    Held::Plain {
        owner: "00000000-0000-4000-8000-000000000001:1".parse().unwrap(),
        count: 1,
    }
}

/// D's grant arrives after the lease was raised. It counts for the lease that its request stated, so the holder never
/// relies on more than three nodes have promised.
#[tokio::test(start_paused = true)]
async fn a_late_grant_carries_the_lease_that_it_stated() {
    let a = EmbeddedNode::new();
    let b = EmbeddedNode::new();
    let c = EmbeddedNode::new();
    let d = EmbeddedNode::new().latency(MS(100));
    let e = EmbeddedNode::new();
    e.kill();
    let nodes = vec![a.clone(), b.clone(), c.clone(), d.clone(), e.clone()];
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let g = locks.lock("x").lease(S(10)).acquire().await.unwrap();
    c.pause();
    assert!(matches!(
        g.extend(S(60)).await,
        Err(ConfirmError::Unconfirmed { .. })
    ));
    sleep(S(12)).await;
    c.resume();
    e.restart();
    // The renewal that C queued while it was paused finds an expired claim.
    let other = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes)
        .unwrap();
    let h = other.lock("x").try_acquire().await.unwrap();
    assert!(
        !(g.is_held() && h.is_some_and(|h| h.is_held())),
        "two holders"
    );
}

/// The first guard is released while a re-entry is in progress, which is then cancelled: it was the last entry.
#[tokio::test(start_paused = true)]
async fn a_cancelled_re_entry_does_not_keep_the_hold_for_ever() {
    let node = EmbeddedNode::new().latency(MS(20));
    let locks = Locks::on_node(node.clone()).unwrap();
    let owner = locks.owner();
    let g = owner.lock("a").acquire().await.unwrap();
    let o = owner.clone();
    let re = tokio::spawn(async move {
        let l = o.lock("a");
        l.acquire().await.map(drop)
    });
    sleep(MS(5)).await; // re-entry is under way
    let rel = tokio::spawn(g.release());
    sleep(MS(1)).await;
    re.abort();
    rel.await.unwrap().unwrap();
    sleep(S(600)).await;
    assert_eq!(node.names(), []);
}

/// The keeper learns of a loss that another task finds; otherwise closing would wait for the hold for ever.
#[tokio::test(start_paused = true)]
async fn a_loss_that_an_extension_finds_is_cleaned_up() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let g = locks.lock("a").acquire().await.unwrap();
    node.flush();
    let error = g.extend(S(30)).await.unwrap_err();
    assert!(matches!(
        error,
        ConfirmError::Lost {
            lost: Lost::Taken,
            ..
        }
    ));
    drop(g);
    sleep(S(300)).await;
    assert_eq!(locks.held(), 0);
    timeout(S(3600), locks.close()).await.expect("close hangs");
}

/// The node was flushed. Releasing one of two guards detects the loss for both.
#[tokio::test(start_paused = true)]
async fn not_yours_to_one_guard_is_the_end_of_all() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let g1 = locks.lock("a").lease(S(60)).acquire().await.unwrap();
    let g2 = g1.reenter().await.unwrap();
    node.flush();
    assert!(matches!(
        g1.release().await,
        Err(ReleaseError::NotHeld { .. })
    ));
    assert!(locks.lock("a").try_acquire().await.unwrap().is_some());
    assert!(!g2.is_held());
}

/// A wake-up overtakes the refusal of a round that a new leader took over.
#[tokio::test(start_paused = true)]
async fn a_wake_up_is_not_lost_when_the_leader_changes() {
    let node = EmbeddedNode::new().latency(MS(20));
    let locks = Locks::on_node(node.clone()).unwrap();
    let lock = locks.lock("a");
    let g = lock.acquire().await.unwrap();
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let lock = lock.clone();
        tasks.push(tokio::spawn(async move {
            let g = lock.acquire().await.unwrap();
            sleep(MS(5)).await;
            g.release().await.unwrap();
        }));
        sleep(MS(1)).await;
    }
    sleep(MS(100)).await;
    g.release().await.unwrap();
    for t in tasks {
        t.await.unwrap();
    }
    assert!(began.elapsed() < S(2));
}

/// Three members refuse, and releasing the other two publishes wake-ups. Only those of members that refused count.
#[tokio::test(start_paused = true)]
async fn our_own_clean_up_does_not_wake_us() {
    let n = Name::new("a").unwrap();
    let mut nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    for node in &nodes {
        node.put(&n, foreign(), Some(S(600)));
    }
    for _ in 0..2 {
        nodes.push(EmbeddedNode::new().latency(MS(2)));
    }
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let _ = locks.lock("a").wait(S(60)).acquire().await;
    assert!(nodes[0].executed() < 100);
}

/// One node is down, one is held and one is free: another owner is in the way, and waiting helps.
#[tokio::test(start_paused = true)]
async fn contention_with_a_dead_minority_is_contention() {
    let n = Name::new("a").unwrap();
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    nodes[0].kill();
    nodes[1].put(&n, foreign(), Some(S(3)));
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    let guard = locks.lock("a").wait(S(20)).acquire().await.unwrap();
    assert!(guard.is_held());
}

/// A waiter continues when a threshold of its subscriptions is live.
#[tokio::test(start_paused = true)]
async fn a_dead_minority_does_not_delay_a_waiter() {
    let nodes: Vec<_> = (0..5).map(|_| EmbeddedNode::new()).collect();
    nodes[0].kill();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let other = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let g = other.lock("a").acquire().await.unwrap();
    let began = Instant::now();
    let w = tokio::spawn({
        let l = locks.lock("a");
        async move { l.acquire().await.map(drop) }
    });
    sleep(MS(20)).await;
    g.release().await.unwrap();
    w.await.unwrap().unwrap();
    assert!(began.elapsed() < MS(500));
}

/// A leaked hold ends with its lease, for all of its guards.
#[tokio::test(start_paused = true)]
async fn other_guards_of_a_leaked_hold_hear_of_its_end() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let g1 = locks.lock("a").acquire().await.unwrap();
    let g2 = g1.reenter().await.unwrap();
    g1.leak();
    let began = Instant::now();
    let r = timeout(
        S(3600),
        g2.while_held(async |_| std::future::pending::<()>().await),
    )
    .await;
    assert_eq!(r, Ok(Err(Lost::Expired)));
    assert!(began.elapsed() < S(31));
}

/// Two acquisitions of one owner run one after the other, each within its own wait.
#[tokio::test(start_paused = true)]
async fn an_owner_that_waits_for_itself_gives_up_in_time() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let _g = locks.lock("a").acquire().await.unwrap();
    let owner = locks.owner();
    let o = owner.clone();
    let _t = tokio::spawn(async move { o.lock("a").acquire().await.map(drop) });
    sleep(MS(10)).await;
    let r = timeout(S(600), owner.lock("a").wait(MS(100)).acquire()).await;
    assert!(r.is_ok_and(|acquired| acquired.is_err()));
}

/// A node that hands out and stores scripted tokens.
#[derive(Debug)]
struct Fake {
    address: String,
    granted: u64,
    stored: u64,
}
impl Transport for Fake {
    fn call(&self, r: Request) -> Call {
        let reply = match r {
            Request::Acquire(_) => Reply::Checked(
                AcquireReply::Granted {
                    freshness: Freshness::Anew,
                    token: Token(self.granted),
                },
                Shown {
                    process: Process(self.address.bytes().map(u64::from).sum()),
                    marker: ShownMarker::Own(
                        Nonce::new(1),
                        MarkerState::Confirmed,
                        Figures::same(60_000),
                    ),
                },
            ),
            Request::Renew(r) => Reply::Renew(
                r.claims
                    .iter()
                    .map(|claim| RenewReply::AlreadyYours {
                        token: Token(claim.token.0.max(self.stored)),
                    })
                    .collect(),
            ),
            _ => Reply::Release(ReleaseReply::FREED),
        };
        Box::pin(std::future::ready(Ok(reply)))
    }
    fn subscribe(&self, _: &Channel, l: Arc<dyn Listener>) -> Subscription {
        l.live();
        Subscription::new(())
    }
    fn attend(&self, w: Arc<dyn Witness>) -> Subscription {
        w.reachable();
        Subscription::new(())
    }
    fn slot(&self, _: &Name) -> Result<Slot, UnfitName> {
        Ok(Slot::WHOLE)
    }
    fn server(&self, _: Slot) -> ServerNumber {
        ServerNumber::WHOLE
    }
    fn address(&self) -> &str {
        &self.address
    }
}
/// A and B take the proposal while C reports a larger token: the result is the token that A and B took.
#[tokio::test(start_paused = true)]
async fn a_raise_settles_on_the_token_that_was_taken() {
    let f = |a: &str, granted, stored| Fake {
        address: a.into(),
        granted,
        stored,
    };
    // A and B hand out 6; C hands out 5, and stores 10 when the proposal arrives.
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes([f("a", 6, 0), f("b", 6, 0), f("c", 5, 10)])
        .unwrap();
    let g = locks.lock("x").acquire().await.unwrap();
    assert_eq!(g.fencing_token(), Token(7));
}

/// The leader has found out that no quorum answers, and fails for all.
#[tokio::test(start_paused = true)]
async fn waiters_of_one_process_fail_together_in_an_outage() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    for n in &nodes {
        n.pause();
    }
    let began = Instant::now();
    let ts: Vec<_> = (0..20)
        .map(|_| {
            let l = locks.lock("a");
            tokio::spawn(async move { l.acquire().await.map(drop) })
        })
        .collect();
    for t in ts {
        t.await.unwrap().unwrap_err();
    }
    let took = began.elapsed();
    assert!(S(30) <= took && took < S(31), "{took:?}");
}

/// The grants of a try are released before closing ends.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_try_under_way() {
    let node = EmbeddedNode::new().latency(MS(20));
    let locks = Locks::on_node(node.clone()).unwrap();
    let l = locks.lock("a");
    let t = tokio::spawn(async move { l.try_acquire().await.map(|g| g.is_some()) });
    sleep(MS(15)).await;
    locks.close().await;
    assert_eq!(node.names(), []);
    assert!(t.await.unwrap().is_err());
}
