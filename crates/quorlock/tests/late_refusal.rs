//! The refusal of the round's own acquire comes after the watchdog's acquire of the same member was granted.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test is the world: it waits and spawns by itself, and fails by panicking"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorlock::transport::{Call, Channel, Listener, Request, Subscription, Transport};
use quorlock::{EmbeddedNode, Locks, Name};
use tokio::time::sleep;

const S: fn(u64) -> Duration = Duration::from_secs;

/// A way on which the reply to the first acquire is late.
#[derive(Debug, Clone)]
struct Late(EmbeddedNode, Arc<Mutex<Option<Duration>>>);

impl Transport for Late {
    fn call(&self, request: Request) -> Call {
        let late = match request {
            Request::Acquire(_) => self.1.lock().unwrap().take(),
            _ => None,
        };
        let call = self.0.call(request);
        match late {
            None => call,
            Some(late) => Box::pin(async move {
                let result = call.await;
                sleep(late).await;
                result
            }),
        }
    }
    fn subscribe(&self, channel: &Channel, listener: Arc<dyn Listener>) -> Subscription {
        self.0.subscribe(channel, listener)
    }
    fn address(&self) -> &str {
        self.0.address()
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_to_a_member_whose_refusal_was_late() {
    let nodes: Vec<_> = (0..3)
        .map(|_| Late(EmbeddedNode::new(), Arc::default()))
        .collect();
    let builder = || Locks::builder().trust_fresh_nodes().watchdog_lease(S(3));
    let locks = builder().on_nodes(nodes.clone()).unwrap();
    let name = Name::new("a").unwrap();
    // Another has the claim on the third node.
    let third = builder().on_nodes([nodes[2].clone()]).unwrap();
    let other = third.lock("a").acquire().await.unwrap();
    *nodes[2].1.lock().unwrap() = Some(Duration::from_millis(1_900));
    let guard = locks.lock("a").acquire().await.unwrap();
    sleep(Duration::from_millis(500)).await;
    other.release().await.unwrap();
    sleep(S(3)).await;
    println!("{:?}", nodes[2].0.held(&name));
    guard.release().await.unwrap();
    sleep(Duration::from_millis(500)).await;
    let left: Vec<_> = nodes.iter().map(|node| node.0.held(&name)).collect();
    assert!(left.iter().all(Option::is_none), "{left:?}");
}
