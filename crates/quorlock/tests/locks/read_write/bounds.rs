//! A reader's `.wait(d)` is bounded by d even if the nodes are silent.

use quorlock::{EmbeddedNode, Locks};
use tokio::time::{Instant, sleep};

use super::MS;

/// The node is paused. A plain lock gives up when its wait is over. A reader without waiters in front first tries
/// once, and that try must be bounded, too.
#[tokio::test(start_paused = true)]
async fn a_reader_waits_no_longer_than_it_was_told_to() {
    let mut took = Vec::new();
    for mode in ["plain", "write", "read"] {
        let node = EmbeddedNode::new();
        let locks = Locks::on_node(node.clone()).unwrap();
        node.pause();
        let lock = match mode {
            "plain" => locks.lock("a"),
            "write" => locks.write("a"),
            _ => locks.read("a"),
        };
        let began = Instant::now();
        let result = lock.wait(MS(50)).acquire().await;
        assert!(result.is_err());
        took.push((mode, began.elapsed(), result.unwrap_err().to_string()));
    }
    assert!(took.iter().all(|(_, took, _)| *took <= MS(60)), "{took:#?}");
}

/// The same for readers that waited behind a writer, when the first of them is let in.
#[tokio::test(start_paused = true)]
async fn a_reader_that_is_let_in_waits_no_longer_than_it_was_told_to() {
    let node = EmbeddedNode::new().latency(MS(4));
    let locks = Locks::on_node(node.clone()).unwrap();
    let other = Locks::on_node(node.clone()).unwrap();
    let writer = other.write("a").acquire().await.unwrap();
    let began = Instant::now();
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let lock = locks.read("a").wait(MS(500));
            tokio::spawn(async move {
                let result = lock.acquire().await;
                (result, Instant::now())
            })
        })
        .collect();
    sleep(MS(400)).await;
    writer.release().await.unwrap();
    // The first reader is let in; then the node is paused.
    while locks.held() == 0 {
        sleep(MS(1)).await;
    }
    node.pause();
    let mut ended = Vec::new();
    for reader in readers {
        let (result, at) = reader.await.unwrap();
        ended.push((result.is_ok(), at - began));
    }
    assert!(ended.iter().all(|(_, took)| *took <= MS(510)), "{ended:?}");
}
