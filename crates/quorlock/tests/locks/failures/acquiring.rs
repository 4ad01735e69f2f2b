//! Requests that are lost, doubled or refused while a lock is acquired.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quorlock::transport::Request;
use quorlock::{AcquireError, EmbeddedNode, Locks, Mode};
use quorlock_core::node::Held;

use crate::failures::support::{
    assert_empty, at_once, client, is_claimed_by, millis, name, nodes, secs, settle,
};
use crate::failures::unreliable::{Fate, Unreliable};

/// A client sent its acquire again after a reply time-out, the server counted it twice, and one unlock left the lock
/// held for good. Here a request states "the count is 1", not "one more".
#[tokio::test(start_paused = true)]
async fn story_01_an_acquisition_that_arrives_twice_counts_once() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    way.decide(|_| Fate::ArrivesTwice(millis(20)));
    let locks = Locks::on_node(way.transport()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    settle().await;
    assert_eq!(node.executed(), 2);
    assert_eq!(node.stored_token(&name("a")), Some(guard.fencing_token()));
    assert!(is_claimed_by(&node, "a", &guard, 1));
    guard.release().await.unwrap();
    assert_empty(std::slice::from_ref(&node));
    let next = at_once(locks.lock("a").try_acquire()).await.unwrap();
    assert!(next.is_some());
}

/// The reply never comes. The next request has another owner number, and the claim of the first one is released.
#[tokio::test(start_paused = true)]
async fn story_01_an_acquisition_asked_again_after_a_lost_reply_leaves_nothing() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    let mut lost = 0;
    way.decide(move |request| match request {
        Request::Acquire(_) if lost < 3 => {
            lost += 1;
            Fate::ReplyLost
        }
        _ => Fate::Arrives,
    });
    let locks = Locks::on_node(way.transport()).unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    assert!(is_claimed_by(&node, "a", &guard, 1));
    guard.release().await.unwrap();
    settle().await;
    assert_empty(std::slice::from_ref(&node));
    tokio::time::sleep(secs(10)).await;
    assert_empty(&[node]);
    let numbers = way.take_sent().into_iter().filter_map(|request| {
        let Request::Acquire(acquire) = request else {
            return None;
        };
        Some(acquire.owner.number)
    });
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers.len(), 4);
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

/// The connection ends while an acquire is under way. The node executes it after the release that follows on the next
/// connection, and no client knows of the claim: the name must not stay locked for a lease.
#[tokio::test(start_paused = true)]
async fn an_acquire_that_outlives_its_call_leaves_nothing() {
    let node = EmbeddedNode::new();
    let way = Unreliable::to(&node);
    way.decide(|request| match request {
        Request::Acquire(_) => Fate::ArrivesLate(millis(2_200)),
        _ => Fate::Arrives,
    });
    let locks = Locks::on_node(way.transport()).unwrap();
    let lock = locks.lock("a").lease(secs(30));
    lock.try_acquire().await.unwrap_err();
    settle().await;
    assert_empty(std::slice::from_ref(&node));
    tokio::time::sleep(secs(3)).await;
    assert_empty(&[node]);
}

/// The same with one of three nodes, and a hold that is released before that node executes the acquire.
#[tokio::test(start_paused = true)]
async fn an_acquire_that_outlives_its_hold_leaves_nothing() {
    let nodes = nodes(3);
    let ways: Vec<_> = nodes.iter().map(Unreliable::to).collect();
    ways[2].decide(|request| match request {
        Request::Acquire(_) => Fate::ArrivesLate(millis(2_200)),
        _ => Fate::Arrives,
    });
    let locks = Locks::builder().trust_fresh_nodes();
    let locks = locks.on_nodes(ways.iter().map(Unreliable::transport));
    let lock = locks.unwrap().lock("a").lease(secs(30));
    let guard = lock.acquire().await.unwrap();
    tokio::time::sleep(millis(2_010)).await;
    guard.release().await.unwrap();
    settle().await;
    assert_empty(&nodes);
    tokio::time::sleep(secs(3)).await;
    assert_empty(&nodes);
}

/// Every failed round of a blocking lock multiplied its lease by a thousand: ten seconds became days. Here the lease
/// is a value that no round changes.
#[tokio::test(start_paused = true)]
async fn story_08_no_failed_round_makes_the_lease_longer() {
    let node = EmbeddedNode::new();
    let other = Locks::on_node(node.clone()).unwrap();
    let way = Unreliable::to(&node);
    let locks = Locks::on_node(way.transport()).unwrap();
    let obstacle = other.all(["a", "b"]).lease(secs(20));
    let obstacle = obstacle.acquire().await.unwrap();
    let mut failing = 0;
    way.decide(move |_| {
        failing += 1;
        match failing {
            1..=3 => Fate::Refused(quorlock::transport::Cause::Busy),
            4..=6 => Fate::ReplyLost,
            _ => Fate::Arrives,
        }
    });
    let lock = locks.all(["a", "b"]).lease(secs(10));
    let guard = lock.acquire().await.unwrap();
    drop(obstacle);
    let rounds = way.take_sent().len();
    assert!(12 < rounds, "{rounds} requests are not many failed rounds");
    assert!(guard.validity() < secs(10));
    for text in ["a", "b"] {
        let (_, ttl) = node.held(&name(text)).unwrap();
        assert!(
            ttl <= quorlock_core::message::Ttl::Millis(10_000),
            "{ttl:?}"
        );
    }
    assert_eq!(guard.lost().await, quorlock::Lost::Expired);
    tokio::time::sleep(millis(200)).await;
    assert_empty(&[node]);
}

/// RedLock with a lease shorter than the wait, or without one, gave a lock to several owners, hung, or spun. Here a
/// round is won only within its own lease, however long the wait was, and waiting costs few requests.
#[tokio::test(start_paused = true)]
async fn story_09_a_lease_shorter_than_the_wait_has_one_owner_at_a_time() {
    for wait in [None, Some(secs(60))] {
        let nodes = nodes(5);
        let inside = Arc::new(AtomicU32::new(0));
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let mut lock = client(&nodes).lock("a").lease(secs(1));
            if let Some(wait) = wait {
                lock = lock.wait(wait);
            }
            let inside = inside.clone();
            tasks.push(tokio::spawn(async move {
                for _ in 0..3 {
                    let guard = lock.acquire().await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                    // The holder never releases: its claim ends with the lease.
                    guard.lost().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    std::mem::forget(guard);
                }
            }));
        }
        for task in tasks {
            tokio::time::timeout(secs(60), task).await.unwrap().unwrap();
        }
        let executed: u64 = nodes.iter().map(EmbeddedNode::executed).sum();
        assert!(executed < 12 * 200, "{executed} requests for 12 holds");
    }
}

/// A hanging node used up the wait of all the others. Here they are asked at the same time.
#[tokio::test(start_paused = true)]
async fn story_09_hanging_nodes_do_not_use_up_the_wait() {
    let nodes = nodes(5);
    nodes[0].pause();
    nodes[1].pause();
    let lock = client(&nodes).lock("a").wait(millis(20));
    let guard = lock.acquire().await.unwrap();
    assert!(guard.is_held());
}

/// After a time-out the body ran without the lock. Here running it takes a guard, and an acquisition that fails
/// returns none.
#[tokio::test(start_paused = true)]
async fn story_26_a_body_runs_only_with_the_lock() {
    let node = EmbeddedNode::new();
    let locks = Locks::on_node(node.clone()).unwrap();
    let ran = Arc::new(AtomicU32::new(0));
    let run = async |lock: quorlock::Lock| {
        let body = async { ran.fetch_add(1, Ordering::SeqCst) };
        let guard = lock.acquire().await?;
        Ok::<_, AcquireError>(guard.while_held(async |_| body.await).await)
    };
    let held = locks.lock("a").acquire().await.unwrap();
    let contended = run(locks.lock("a").wait(secs(3))).await;
    assert!(matches!(contended, Err(AcquireError::Contended { .. })));
    drop(held);
    node.kill();
    let down = run(locks.lock("a").wait(secs(3))).await;
    assert!(matches!(down, Err(AcquireError::NoQuorum { .. })));
    locks.close().await;
    assert_eq!(run(locks.lock("a")).await, Err(AcquireError::Closed));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// A plain lock and a read-write lock on one name did not exclude each other. Here the request for the other kind
/// fails with an error that names both, and nothing is changed.
#[tokio::test(start_paused = true)]
async fn story_30_another_kind_of_lock_on_the_name_is_an_error_that_names_both() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let stranger = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31".parse().unwrap();
    for (mode, held) in [
        (Mode::Read, Held::read(stranger, 1)),
        (Mode::Write, Held::write(stranger, 1)),
    ] {
        for node in &nodes {
            node.put(&name("a"), held.clone(), Some(secs(30)));
        }
        for result in [
            locks.lock("a").acquire().await.map(Some),
            locks.lock("a").try_acquire().await,
        ] {
            let error = result.unwrap_err();
            let (asked, found) = (Mode::Plain, mode);
            let names = "a".to_owned();
            let expected = AcquireError::OtherMode {
                names,
                asked,
                found,
            };
            assert_eq!(error, expected);
            let words = error.to_string();
            assert!(words.contains(&asked.to_string()) && words.contains(&found.to_string()));
        }
        settle().await;
        for node in &nodes {
            assert_eq!(node.held(&name("a")).unwrap().0, held);
        }
    }
}
