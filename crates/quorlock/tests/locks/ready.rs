//! What kind of error an acquisition has, and whether a client is ready.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::{AcquireError, EmbeddedNode, ErrorKind, Locks};

fn three() -> (Vec<EmbeddedNode>, Locks) {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::builder().trust_fresh_nodes();
    let locks = locks.on_nodes(nodes.clone()).unwrap();
    (nodes, locks)
}

#[tokio::test(start_paused = true)]
async fn a_client_is_ready_while_a_majority_grants() {
    let (nodes, locks) = three();
    locks.ready().await.unwrap();
    let others = locks.lock(Locks::READY).acquire().await.unwrap();
    locks.ready().await.unwrap();
    others.release().await.unwrap();
    nodes[0].kill();
    locks.ready().await.unwrap();
    nodes[1].kill();
    let error = locks.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.kind().to_http_status(), 503);
    locks.close().await;
    let error = locks.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
}

/// New nodes may have lost what they knew. A client that waits for them is not ready.
#[tokio::test(start_paused = true)]
async fn a_client_of_quarantined_nodes_is_not_ready() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let locks = Locks::on_nodes(nodes).unwrap();
    let error = locks.ready().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("quarantined"), "{error}");
    tokio::time::sleep(Duration::from_secs(61)).await;
    locks.ready().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn each_error_has_a_kind() {
    let (_, locks) = three();
    let second = Duration::from_secs(1);
    let held = locks.read("a").acquire().await.unwrap();
    let kind = async |lock: quorlock::Lock| lock.acquire().await.unwrap_err().kind();
    assert_eq!(kind(locks.write("a").wait(second)).await, ErrorKind::Busy);
    assert_eq!(
        kind(locks.lock("a").wait(second)).await,
        ErrorKind::Misconfigured
    );
    assert_eq!(kind(locks.fair("b")).await, ErrorKind::Misconfigured);
    assert_eq!(kind(locks.lock("")).await, ErrorKind::Misconfigured);
    assert_eq!(
        kind(locks.lock("b").lease(Duration::ZERO)).await,
        ErrorKind::Misconfigured
    );
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_node_is_reported_once_for_all_names() {
    for is_quarantined in [false, true] {
        let (nodes, locks) = three();
        let locks = match is_quarantined {
            true => Locks::on_nodes(nodes.clone()).unwrap(),
            false => locks,
        };
        if !is_quarantined {
            nodes.iter().for_each(EmbeddedNode::kill);
        }
        let names = (0..5).map(|name| name.to_string());
        let error = locks.all(names).try_acquire().await.unwrap_err();
        let AcquireError::NoQuorum { nodes: reports, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(reports.len(), 3, "{error}");
    }
}
