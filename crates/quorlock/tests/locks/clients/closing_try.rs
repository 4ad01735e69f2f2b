//! Closing waits until no claim is left on the client's nodes, whichever client drives the lock.

use quorlock::{EmbeddedNode, Locks, Name};
use tokio::time::{sleep, timeout};

use super::MS;

/// A try is in progress, and its task is busy for a tenth of a second while one of its clients is closed.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_try_that_another_client_drives() {
    let mut left = Vec::new();
    for closed in [0, 1] {
        let node = || EmbeddedNode::new().latency(MS(4));
        let nodes = [node(), node()];
        let clients = [&nodes[0], &nodes[1]].map(|node| Locks::on_node(node.clone()).unwrap());
        let both = clients[0].lock("a").and([clients[1].lock("b")]);
        let task = tokio::spawn(async move {
            let mut tried = Box::pin(both.try_acquire());
            assert!(timeout(MS(1), tried.as_mut()).await.is_err());
            sleep(MS(100)).await;
            tried.await.map(drop)
        });
        sleep(MS(10)).await;
        clients[closed].close().await;
        let name = Name::new(["a", "b"][closed]).unwrap();
        left.push((closed, nodes[closed].held(&name)));
        let _ = task.await;
    }
    assert!(left.iter().all(|(_, held)| held.is_none()), "{left:?}");
}

/// The watchdog's acquire on the closed client's node is in flight.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_what_the_watchdog_of_another_client_has_asked() {
    let nodes: Vec<_> = (0..3)
        .map(|_| EmbeddedNode::new().latency(MS(40)))
        .collect();
    let first = Locks::on_node(EmbeddedNode::new()).unwrap();
    let second = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(nodes.clone())
        .unwrap();
    let both = first.lock("a").and([second.lock("b")]);
    nodes[2].kill();
    let guard = both.acquire().await.unwrap();
    sleep(MS(5_000)).await;
    nodes[2].restart();
    let name = Name::new("b").unwrap();
    while nodes[2].held(&name).is_none() {
        sleep(MS(1)).await;
    }
    // The request was executed, and its answer is in flight.
    second.close().await;
    let left: Vec<_> = nodes.iter().map(|node| node.held(&name)).collect();
    drop(guard);
    assert!(left.iter().all(Option::is_none), "{left:?}");
}
