//! Work that runs while a candidate leads.

use std::future::pending;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorlock::{EmbeddedNode, Locks, RetryPolicy};
use tokio::time::{Instant, sleep, timeout};

use crate::failures::support::{
    Moment, assert_empty, at_once, client, name, nodes, secs, settle, take_away,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// Notes when it is dropped.
struct Bell(Moment);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.is_now();
    }
}

#[tokio::test(start_paused = true)]
async fn work_runs_in_each_term_and_is_cancelled_when_the_term_ends() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let (terms, begun) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let running = locks.leader("a").run_while_leader(|leadership| {
        terms.lock().unwrap().push(leadership.term());
        let (begun, number) = (&begun, terms.lock().unwrap().len());
        async move {
            assert!(leadership.is_leading());
            begun.fetch_add(1, Ordering::SeqCst);
            match number {
                4 => "done",
                _ => pending().await,
            }
        }
    });
    let mut running = pin!(running);
    for _ in 0..2 {
        assert!(timeout(secs(1), running.as_mut()).await.is_err());
        nodes.iter().for_each(|node| take_away(node, "a"));
        // It learns of the loss at its next renewal.
        assert!(timeout(secs(11), running.as_mut()).await.is_err());
    }
    nodes.iter().for_each(|node| take_away(node, "a"));
    assert_eq!(timeout(secs(11), running).await.unwrap().unwrap(), "done");
    let terms = terms.lock().unwrap().clone();
    assert_eq!(terms.len(), 4);
    assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
    assert_eq!(begun.load(Ordering::SeqCst), 4);
    settle().await;
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_drops_its_work_before_another_begins_its_own() {
    let nodes = nodes(5);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    let old = Locks::builder()
        .trust_fresh_nodes()
        .on_nodes(ways.iter().map(Unreliable::transport))
        .unwrap();
    let ended = Moment::default();
    let noted = ended.clone();
    let old = tokio::spawn(async move {
        let work = |_| {
            let bell = Bell(noted.clone());
            async move {
                let _bell = bell;
                // The work does not check its term.
                pending::<()>().await;
            }
        };
        old.leader("a").run_while_leader(work).await
    });
    sleep(secs(15)).await;
    for way in &ways {
        way.decide(|_| Fate::Lost);
    }
    let new = client(&nodes).leader("a");
    let began = new.run_while_leader(|_| async { Instant::now() });
    let began = began.await.unwrap();
    assert!(ended.when().expect("the work was dropped") < began);
    assert!(!old.is_finished());
    old.abort();
}

#[tokio::test(start_paused = true)]
async fn work_may_step_down_and_is_dropped_before_the_name_is_released() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let rounds = AtomicUsize::new(0);
    let order = Mutex::new(Vec::new());
    let candidate = locks.leader("a").rest(secs(1));
    let done = candidate.run_while_leader(|leadership| {
        let round = rounds.fetch_add(1, Ordering::SeqCst);
        let (order, nodes) = (&order, &nodes);
        async move {
            let _last = Last { order, nodes };
            leadership.step_down();
            match round {
                0 => pending::<()>().await,
                // Work that steps down and then completes was done in time.
                _ => order.lock().unwrap().push(true),
            }
        }
    });
    at_once(done).await.unwrap();
    assert_eq!(*order.lock().unwrap(), [true, true, true]);
    assert_eq!(rounds.load(Ordering::SeqCst), 2);
    settle().await;
    assert_empty(&nodes);
}

/// Records whether the name was still held when the work was dropped.
struct Last<'a> {
    order: &'a Mutex<Vec<bool>>,
    nodes: &'a [EmbeddedNode],
}

impl Drop for Last<'_> {
    fn drop(&mut self) {
        let is_held = self.nodes[0].held(&name("a")).is_some();
        self.order.lock().unwrap().push(is_held);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_drops_its_work_first_and_leaves_no_key() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let order = Mutex::new(Vec::new());
    let candidate = locks.leader("a");
    {
        let running = candidate.run_while_leader(|_| {
            let last = Last {
                order: &order,
                nodes: &nodes,
            };
            async move {
                let _last = last;
                pending::<()>().await;
            }
        });
        assert!(timeout(secs(60), running).await.is_err());
    }
    assert_eq!(*order.lock().unwrap(), [true]);
    settle().await;
    assert_empty(&nodes);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_through_an_outage() {
    let node = EmbeddedNode::new();
    let retry = RetryPolicy::default().without_quorum(secs(2));
    let locks = Locks::builder().retry(retry).on_node(node.clone()).unwrap();
    node.kill();
    let candidate = locks.leader("a");
    let mut running = pin!(candidate.run_while_leader(|leadership| async move {
        assert!(leadership.is_leading());
        7
    }));
    assert!(timeout(secs(20), running.as_mut()).await.is_err());
    node.restart();
    assert_eq!(timeout(secs(90), running).await.unwrap(), Ok(7));
}
