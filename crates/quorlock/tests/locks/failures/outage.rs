//! How long a wait lasts while no quorum answers.

use std::time::Duration;

use quorlock::transport::Cause;
use quorlock::{AcquireError, EmbeddedNode, Guard, Locks, RetryPolicy};
use tokio::time::{Instant, sleep};

use crate::failures::support::{
    at_once, client, foreign, millis, name, nodes, secs, settle, take_away,
};
use crate::failures::unreliable::{ADVICE, Fate, Unreliable};

/// The outcome of an acquisition, and how long it took.
async fn timed<T>(acquiring: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let outcome = acquiring.await;
    (outcome, began.elapsed())
}

fn assert_no_quorum(outcome: Result<Guard, AcquireError>, tried: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
    let words = error.to_string();
    assert!(words.contains(&format!(" in {tried}")), "{words}");
}

/// Five rounds fail within a tenth of a second, while a server takes seconds to restart: a wait of ten seconds wins
/// the lock.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_bounded_outlasts_a_restart() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let lock = client(&nodes).lock("a").wait(secs(10));
        nodes.iter().for_each(EmbeddedNode::kill);
        let waiting = tokio::spawn(async move { lock.acquire().await });
        sleep(secs(4)).await;
        assert!(!waiting.is_finished(), "it gave up before its time");
        nodes.iter().for_each(EmbeddedNode::restart);
        let guard = at_once(waiting).await.unwrap().unwrap();
        assert!(guard.is_held());
    }
}

/// Only its bound ends the wait, and the error states how long it tried.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_bounded_lasts_as_long_as_it_says() {
    for wait in [1, 20, 90].map(secs) {
        let nodes = nodes(3);
        nodes[0].kill();
        nodes[1].kill();
        let lock = client(&nodes).lock("a").wait(wait);
        let (outcome, took) = timed(lock.acquire()).await;
        assert_no_quorum(outcome, &format!("{wait:?}"));
        assert!(wait <= took && took <= wait + millis(2), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_without_a_bound_ends_after_thirty_seconds_without_a_quorum() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let held = locks.lock("a").acquire().await.unwrap();
    let lock = client(&nodes).lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    // Others hold the lock, which does not end the wait.
    sleep(secs(100)).await;
    nodes.iter().for_each(EmbeddedNode::pause);
    sleep(secs(15)).await;
    nodes.iter().for_each(EmbeddedNode::resume);
    sleep(secs(1)).await;
    assert!(!waiting.is_finished());
    nodes.iter().for_each(EmbeddedNode::pause);
    // It tries every five seconds, and counts from its last try.
    let (outcome, took) = timed(waiting).await;
    assert_no_quorum(outcome.unwrap(), "");
    assert!(secs(30) <= took && took <= secs(36), "{took:?}");
    drop(held);
}

/// Of three nodes one refuses, one is down, and one accepts requests and never answers: a single answer is no quorum.
#[tokio::test(start_paused = true)]
async fn a_refusal_beside_a_dead_node_and_a_silent_one_is_no_quorum() {
    for wait in [None, Some(20), Some(90)] {
        let nodes = nodes(3);
        nodes[0].put(&name("a"), foreign(), None);
        nodes[1].kill();
        nodes[2].pause();
        let mut lock = client(&nodes).lock("a");
        if let Some(wait) = wait {
            lock = lock.wait(secs(wait));
        }
        let wait = secs(wait.unwrap_or(30));
        let ended = tokio::time::timeout(secs(200), timed(lock.acquire())).await;
        let (outcome, took) = ended.unwrap_or_else(|_| panic!("no end of {wait:?}"));
        assert_no_quorum(outcome, "");
        assert!(wait <= took && took <= wait + secs(1), "{wait:?}: {took:?}");
    }
}

/// The same with a node that is slow but answers: the lock is held by another client, and the waiter waits.
#[tokio::test(start_paused = true)]
async fn a_slow_node_that_answers_is_one_of_a_quorum() {
    for latency in [100, 600].map(millis) {
        let mut nodes = nodes(2);
        nodes.push(EmbeddedNode::new().latency(latency));
        nodes[0].put(&name("a"), foreign(), None);
        nodes[1].kill();
        let lock = client(&nodes).lock("a");
        let waiting = tokio::spawn(async move { lock.acquire().await });
        sleep(secs(200)).await;
        assert!(!waiting.is_finished(), "{latency:?}");
        take_away(&nodes[0], "a");
        let guard = tokio::time::timeout(secs(20), waiting).await.unwrap();
        assert!(guard.unwrap().unwrap().is_held());
    }
}

/// Several waiters of a process wait in vain, and each fails after its own time.
#[tokio::test(start_paused = true)]
async fn those_that_wait_together_without_a_quorum_end_each_at_its_time() {
    let nodes = nodes(1);
    nodes[0].kill();
    let locks = client(&nodes);
    let began = Instant::now();
    let mut waiting = Vec::new();
    for wait in [Some(45), None, Some(3), None, Some(31)] {
        let mut lock = locks.lock("a");
        if let Some(wait) = wait {
            lock = lock.wait(secs(wait));
        }
        let wait = secs(wait.unwrap_or(30));
        let task = tokio::spawn(async move { timed(lock.acquire()).await });
        waiting.push((wait, task));
        sleep(secs(1)).await;
    }
    for (wait, task) in waiting {
        let (outcome, took) = task.await.unwrap();
        assert_no_quorum(outcome, &format!("{wait:?}"));
        assert!(
            wait <= took && took <= wait + millis(5),
            "{wait:?}: {took:?}"
        );
    }
    assert!(secs(45) <= began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn how_long_a_wait_lasts_without_a_quorum_is_a_setting() {
    let node = EmbeddedNode::new();
    node.kill();
    let policy = RetryPolicy::default().without_quorum(secs(3));
    let locks = Locks::builder().retry(policy).on_node(node).unwrap();
    let (outcome, took) = timed(locks.lock("a").acquire()).await;
    assert_no_quorum(outcome, "3");
    assert!(secs(3) <= took && took <= millis(3_002), "{took:?}");
}

/// A wrong password stays wrong: both waits end at once when too few members for a threshold are left without those
/// that refuse. One of five does not end a wait.
#[tokio::test(start_paused = true)]
async fn refusals_that_waiting_cannot_cure_end_a_wait_at_once() {
    let incurable = [
        Cause::NoAuth,
        Cause::NoPermission,
        Cause::NoDatabase,
        Cause::Unsupported,
        Cause::WrongType,
    ];
    for cause in incurable {
        for (refusing, ends) in [(1, false), (2, false), (3, true), (5, true)] {
            let nodes = nodes(5);
            let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
            for way in &ways[..refusing] {
                way.decide(move |_| Fate::Refused(cause));
            }
            // One of the others is down, so those that refuse are never outvoted.
            nodes[4].kill();
            nodes[3].kill();
            nodes[2].kill();
            let locks = Locks::builder()
                .trust_fresh_nodes()
                .on_nodes(ways.iter().map(Unreliable::transport))
                .unwrap();
            for lock in [locks.lock("a"), locks.lock("a").wait(secs(20))] {
                let (outcome, took) = timed(lock.acquire()).await;
                let error = outcome.unwrap_err();
                if ends {
                    assert!(took < millis(50), "{cause:?} of {refusing}: {took:?}");
                    assert!(matches!(error, AcquireError::Refused { .. }), "{error}");
                    // What the transport advises reaches the reader.
                    assert!(error.to_string().contains(ADVICE));
                } else {
                    assert!(secs(19) < took, "{cause:?} of {refusing}: {took:?}");
                    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
                }
            }
        }
    }
}

/// A failure that waiting may cure does not end a wait.
#[tokio::test(start_paused = true)]
async fn refusals_that_pass_do_not_end_a_wait() {
    for cause in [
        Cause::Loading,
        Cause::Busy,
        Cause::OutOfMemory,
        Cause::ReadOnly,
        Cause::Misconfigured,
        Cause::NoReplicas,
        Cause::Cluster,
        Cause::Closed,
        Cause::Server,
    ] {
        let node = EmbeddedNode::new();
        let way = Unreliable::to(&node);
        way.decide(move |_| Fate::Refused(cause));
        let lock = Locks::on_node(way.transport())
            .unwrap()
            .lock("a")
            .wait(secs(10));
        let waiting = tokio::spawn(async move { lock.acquire().await });
        sleep(secs(5)).await;
        way.decide(|_| Fate::Arrives);
        let guard = at_once(waiting).await.unwrap();
        assert!(guard.is_ok(), "{cause:?}");
    }
}

/// A re-entry sends requests to the nodes, too.
#[tokio::test(start_paused = true)]
async fn an_owner_waits_for_nodes_that_do_not_confirm_its_hold() {
    let nodes = nodes(3);
    let owner = client(&nodes).owner();
    let outer = owner.lock("a").acquire().await.unwrap();
    nodes.iter().for_each(EmbeddedNode::pause);
    let lock = owner.lock("a").wait(secs(15));
    let waiting = tokio::spawn(async move { lock.acquire().await });
    sleep(secs(8)).await;
    assert!(!waiting.is_finished());
    nodes.iter().for_each(EmbeddedNode::resume);
    let inner = at_once(waiting).await.unwrap().unwrap();
    assert_eq!(inner.hold_count(), 2);
    nodes.iter().for_each(EmbeddedNode::pause);
    let (outcome, took) = timed(owner.lock("a").wait(secs(5)).acquire()).await;
    assert_no_quorum(outcome, "5s");
    assert!(secs(5) <= took && took <= millis(5_100), "{took:?}");
    drop((outer, inner));
    settle().await;
}

/// The pauses double without a bound, so the return of the node must end the current one.
#[tokio::test(start_paused = true)]
async fn a_pause_ends_soon_after_the_node_is_restarted_or_resumed() {
    for stop in [EmbeddedNode::kill, EmbeddedNode::pause] {
        let node = EmbeddedNode::new();
        let hour = secs(3600);
        let policy = RetryPolicy::default().backoff_cap(hour);
        let builder = Locks::builder().retry(policy.without_quorum(hour));
        let locks = builder.on_node(node.clone()).unwrap();
        stop(&node);
        let lock = locks.lock("a");
        let waiter = tokio::spawn(async move { lock.acquire().await.unwrap() });
        sleep(secs(600)).await;
        assert!(!waiter.is_finished());
        node.restart();
        node.resume();
        let returned = Instant::now();
        drop(waiter.await.unwrap());
        assert!(
            returned.elapsed() <= millis(200),
            "{:?}",
            returned.elapsed()
        );
    }
}
