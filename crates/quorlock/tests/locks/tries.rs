//! Clients that try at the same moment, as jobs do that are started by a clock.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::time::Duration;

use futures_util::future::join_all;
use quorlock::transport::{Intercept, Transport as _};
use quorlock::{EmbeddedNode, Locks};
use tokio::time::sleep;

const ROUNDS: usize = 50;

/// Returns a client for which one node is near and the others are far.
fn client(nodes: &[EmbeddedNode], near: usize) -> Locks {
    let nodes = nodes.iter().enumerate().map(|(place, node)| {
        let away = Duration::from_millis(if place == near { 1 } else { 3 });
        Intercept::new(node.clone()).on_call(move |node, request| {
            let node = node.clone();
            // The request is under way at once, as over a connection.
            let call = tokio::spawn(async move {
                sleep(away).await;
                node.call(request).await
            });
            Box::pin(async move { call.await.unwrap() })
        })
    });
    let locks = Locks::builder().trust_fresh_nodes();
    locks.on_nodes(nodes).unwrap()
}

/// Each client gets its own node first, and none a majority. If all gave up, the job would run nowhere.
#[tokio::test(start_paused = true)]
async fn of_clients_that_try_at_the_same_moment_one_gets_the_lock() {
    for count in [2, 3, 4, 5] {
        let nodes: Vec<_> = (0..count).map(|_| EmbeddedNode::new()).collect();
        let clients: Vec<_> = (0..count).map(|near| client(&nodes, near)).collect();
        for round in 0..ROUNDS {
            let name = format!("job/{round}");
            let tries = clients.iter().map(|locks| {
                let lock = locks.lock(&name);
                async move { lock.try_acquire().await.unwrap() }
            });
            let tried = join_all(tries).await;
            let winners = tried.iter().flatten().count();
            assert_eq!(winners, 1, "{count} clients, {name}");
        }
    }
}

/// With the first of the nodes down, the next one decides.
#[tokio::test(start_paused = true)]
async fn one_gets_the_lock_although_the_first_node_is_down() {
    for down in [0, 1, 2] {
        let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
        let clients: Vec<_> = (0..3).map(|near| client(&nodes, near)).collect();
        nodes[down].kill();
        for round in 0..ROUNDS {
            let name = format!("job/{round}");
            let tries = clients.iter().map(|locks| {
                let lock = locks.lock(&name);
                async move { lock.try_acquire().await.unwrap() }
            });
            let tried = join_all(tries).await;
            assert_eq!(tried.iter().flatten().count(), 1, "{down}, {name}");
        }
    }
}

/// Each of three names is tried with the two others. Mostly one of the clients gets all of them.
#[tokio::test(start_paused = true)]
async fn of_clients_that_try_several_names_one_gets_them() {
    let nodes: Vec<_> = (0..3).map(|_| EmbeddedNode::new()).collect();
    let clients: Vec<_> = (0..3).map(|near| client(&nodes, near)).collect();
    let mut runs = 0;
    for round in 0..ROUNDS {
        let names = [0, 1, 2].map(|part| format!("job/{round}/{part}"));
        let tries = clients.iter().map(|locks| {
            let lock = locks.all(&names);
            async move { lock.try_acquire().await.unwrap() }
        });
        let tried = join_all(tries).await;
        runs += tried.iter().flatten().count();
        drop(tried);
        sleep(Duration::from_millis(100)).await;
    }
    assert!((ROUNDS / 2..=ROUNDS).contains(&runs), "{runs} of {ROUNDS}");
}

/// A try that finds a holder is over after one round, whatever the other nodes grant.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_is_tried_once() {
    let nodes: Vec<_> = (0..5).map(|_| EmbeddedNode::new()).collect();
    let locks = [0, 1].map(|near| client(&nodes, near));
    nodes[3..].iter().for_each(EmbeddedNode::kill);
    let held = locks[0].lock("a").acquire().await.unwrap();
    nodes[3..].iter().for_each(EmbeddedNode::restart);
    sleep(Duration::from_secs(200)).await;
    let began = tokio::time::Instant::now();
    assert!(locks[1].lock("a").try_acquire().await.unwrap().is_none());
    assert!(
        began.elapsed() <= Duration::from_millis(4),
        "{:?}",
        began.elapsed()
    );
    held.release().await.unwrap();
}
