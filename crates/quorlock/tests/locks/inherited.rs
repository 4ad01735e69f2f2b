//! The operator asserts that restarts keep everything, but the address leads to another server: the server shows
//! that, and is not trusted.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quorlock::transport::{Intercept, Request, Transport};
use quorlock::{EmbeddedNode, Guard, Locks, LocksBuilder, NodeTrust, Persistence};
use tokio::time::sleep;

const S: fn(u64) -> Duration = Duration::from_secs;

/// An address that leads to one of two servers.
#[derive(Debug, Clone)]
struct Address {
    servers: [EmbeddedNode; 2],
    to: Arc<AtomicUsize>,
}

impl Address {
    /// Returns the transport to the server to which the address leads at each request.
    fn transport(&self) -> Intercept<EmbeddedNode> {
        let (calls, subscriptions) = (self.clone(), self.clone());
        let server = |address: &Address| address.servers[address.to.load(Ordering::SeqCst)].clone();
        Intercept::new(self.servers[0].clone())
            .on_call(move |_, request| server(&calls).call(request))
            .on_subscribe(move |_, channel, listener| {
                server(&subscriptions).subscribe(channel, listener)
            })
    }
}

fn client() -> LocksBuilder {
    Locks::builder().node_trust(NodeTrust::AssertedDurable)
}

/// An address, and a hold of `a` on its first server. The other server was used elsewhere, and was restarted.
async fn held() -> (Address, Guard) {
    let server = || EmbeddedNode::new().persistence(Persistence::EveryWrite);
    let address = Address {
        servers: [server(), server()],
        to: Arc::default(),
    };
    let elsewhere = client().on_node(address.servers[1].clone()).unwrap();
    drop(elsewhere.lock("x").wait(S(200)).acquire().await.unwrap());
    // It would make the server inherit its marker after the restart, as it should.
    elsewhere.close().await;
    address.servers[1].kill();
    address.servers[1].restart();
    let holder = client().on_node(address.transport()).unwrap();
    let held = holder.lock("a").wait(S(200)).acquire().await.unwrap();
    (address, held)
}

/// Whether both clients hold the lock when another server takes the address this long after the contender first used
/// it.
async fn both_hold(after: Duration, tries: usize) -> bool {
    let (address, held) = held().await;
    let contender = client().on_node(address.transport()).unwrap();
    drop(contender.lock("b").acquire().await.unwrap());
    drop(contender.lock("b").acquire().await.unwrap());
    sleep(after).await;
    assert!(held.is_held());
    address.to.store(1, Ordering::SeqCst);
    for _ in 0..tries {
        if let Ok(Some(won)) = contender.lock("a").try_acquire().await {
            return won.is_held() && held.is_held();
        }
    }
    false
}

#[tokio::test(start_paused = true)]
async fn another_nonce_than_the_client_knows_is_never_inherited() {
    let mut both = Vec::new();
    for minutes in [5, 59, 61, 65] {
        both.push((minutes, both_hold(S(60 * minutes), 1).await));
    }
    assert!(
        both.iter().all(|(_, both)| !both),
        "both held, by minutes: {both:?}"
    );
}

/// The request that finds the other nonce withdraws the trust. The next request must not make the node inherit it.
#[tokio::test(start_paused = true)]
async fn another_nonce_is_not_inherited_by_the_second_request_either() {
    assert!(
        !both_hold(S(300), 2).await,
        "both held after the second try"
    );
}

/// A client that knows no nonce sends its request right after one that does.
#[tokio::test(start_paused = true)]
async fn what_a_client_refuses_to_trust_no_newcomer_inherits() {
    let (address, held) = held().await;
    let contender = client().on_node(address.transport()).unwrap();
    drop(contender.lock("b").acquire().await.unwrap());
    address.to.store(1, Ordering::SeqCst);
    assert!(contender.lock("a").try_acquire().await.is_err());
    let newcomer = client().on_node(address.transport()).unwrap();
    let won = newcomer.lock("a").try_acquire().await;
    assert!(held.is_held());
    assert!(won.is_err(), "{won:?}");
}

/// A request that only looks changes nothing.
#[tokio::test(start_paused = true)]
async fn a_look_inherits_nothing() {
    let node = EmbeddedNode::new().persistence(Persistence::EveryWrite);
    let locks = client().on_node(node.clone()).unwrap();
    drop(locks.lock("x").wait(S(200)).acquire().await.unwrap());
    node.kill();
    node.restart();
    let before = node.marker();
    let look = quorlock_core::message::Check {
        figures: quorlock_core::marker::Figures::same(60_000),
        act: quorlock_core::marker::Act::Look,
        trusted: None,
        restarts: quorlock_core::marker::Restarts::KeepEverything,
        known: None,
    };
    let _ = node.call(Request::Probe(look)).await;
    assert_eq!(node.marker(), before);
}
