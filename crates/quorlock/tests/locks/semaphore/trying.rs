//! Tries, which do not wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use quorlock::transport::{Cause, Intercept, Request, Transport as _, TransportError};
use quorlock::{AcquireError, EmbeddedNode, Locks};
use quorlock_core::node::Held;
use tokio::time::Instant;

use super::{SOON, all_of, name_of};
use crate::failures::support::{
    LATENCY, client, foreign, millis, name, nodes, secs, settle, take_away,
};

/// On several nodes, also while one is down, and while one shows holders that the others do not show, or shows none.
#[tokio::test(start_paused = true)]
async fn a_try_finds_the_only_permit_that_is_free() {
    for (many, trouble) in [(1, ""), (3, ""), (3, "down"), (3, "orphan"), (3, "empty")] {
        for free in 0..10 {
            let nodes = nodes(many);
            let mut held = all_of(&client(&nodes).semaphore("s", 10)).await;
            held.remove(free).release().await.unwrap();
            let free = format!("{{s}}:permit:{free}");
            match trouble {
                "down" => nodes[0].kill(),
                "orphan" => nodes[0].put(&name(&free), foreign(), Some(secs(60))),
                "empty" => held
                    .iter()
                    .for_each(|guard| take_away(&nodes[0], &name_of(guard))),
                _ => {}
            }
            let locks = client(&nodes);
            let began = Instant::now();
            let guard = locks.semaphore("s", 10).try_acquire().await.unwrap();
            assert_eq!(guard.map(|guard| name_of(&guard)), Some(free), "{trouble}");
            // A try, a look, and a try.
            assert!(began.elapsed() <= LATENCY * 3, "{:?}", began.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_that_finds_every_permit_held_is_over_after_two_round_trips() {
    for (many, is_one_empty) in [(1, false), (3, false), (3, true), (5, true)] {
        let nodes = nodes(many);
        let held = all_of(&client(&nodes).semaphore("s", 10)).await;
        if is_one_empty {
            held.iter()
                .for_each(|guard| take_away(&nodes[0], &name_of(guard)));
        }
        let locks = client(&nodes);
        let began = Instant::now();
        assert!(
            locks
                .semaphore("s", 10)
                .try_acquire()
                .await
                .unwrap()
                .is_none()
        );
        assert_eq!(began.elapsed(), LATENCY * 2);
    }
}

#[tokio::test(start_paused = true)]
async fn of_clients_that_try_at_one_moment_as_many_succeed_as_there_are_permits() {
    for many in [1, 3, 5] {
        let nodes = nodes(many);
        let clients: Vec<_> = (0..12).map(|_| client(&nodes)).collect();
        for round in 0..50 {
            let tries = clients.iter().map(|locks| {
                let semaphore = locks.semaphore(format!("job/{round}"), 8);
                async move { semaphore.try_acquire().await.unwrap() }
            });
            let tried = join_all(tries).await;
            assert_eq!(tried.iter().flatten().count(), 8, "{many}, {round}");
        }
    }
}

/// A permit that is no lock, in the way for good, does not take the others with it.
#[tokio::test(start_paused = true)]
async fn a_permit_that_can_never_be_held_is_left_out() {
    let nodes = nodes(1);
    let locks = client(&nodes);
    let owner = locks.owner();
    let strange = |permit: usize| name(&format!("{{s}}:permit:{permit}"));
    nodes[0].put(&strange(1), Held::NotALock, None);
    for _ in 0..20 {
        let semaphore = locks.semaphore("s", 3);
        let guards = [
            semaphore.acquire().await.unwrap(),
            semaphore.acquire().await.unwrap(),
        ];
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        let late = semaphore.clone().wait(SOON).acquire().await;
        assert!(
            matches!(late, Err(AcquireError::Contended { .. })),
            "{late:?}"
        );
        drop(guards);
        settle().await;
    }
    nodes[0].put(&strange(0), Held::NotALock, None);
    let semaphore = owner.semaphore("s", 2);
    for ended in [
        semaphore.try_acquire().await.err(),
        semaphore.acquire().await.err(),
    ] {
        assert!(
            matches!(ended, Some(AcquireError::Refused { .. })),
            "{ended:?}"
        );
    }
}

/// A client whose permits are all held by itself knows it, and tells.
#[tokio::test(start_paused = true)]
async fn a_try_of_the_holder_of_all_permits_is_refused() {
    let nodes = nodes(3);
    let semaphore = client(&nodes).semaphore("s", 3);
    let _held = all_of(&semaphore).await;
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let late = semaphore
        .wait(SOON)
        .acquire()
        .await
        .unwrap_err()
        .to_string();
    assert!(
        late.starts_with("all 3 permits of \"s\": held by this very client"),
        "{late}"
    );
}

/// An error that concerns all permits is found by one request, and by one look.
#[tokio::test(start_paused = true)]
async fn a_try_that_nodes_refuse_for_good_does_not_go_through_all_permits() {
    let requests = Arc::new(AtomicU64::new(0));
    let counter = requests.clone();
    let node = Intercept::new(EmbeddedNode::new()).on_call(move |_, _| {
        counter.fetch_add(1, Ordering::SeqCst);
        let error = TransportError::definite(Cause::NoAuth, "wrong password");
        Box::pin(async { Err(error) })
    });
    let locks = Locks::on_node(node).unwrap();
    let error = locks.semaphore("s", 10).try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused { .. }), "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 1 + 10);
}

/// A user may be allowed to lock, and not to look.
#[tokio::test(start_paused = true)]
async fn a_try_without_the_right_to_look_finds_the_only_permit_that_is_free() {
    let node = EmbeddedNode::new();
    let mut held = all_of(&client(std::slice::from_ref(&node)).semaphore("s", 10)).await;
    let blind = Intercept::new(node).on_call(|node, request| match request {
        Request::Inspect(_) => {
            let error = TransportError::definite(Cause::NoPermission, "no");
            Box::pin(async { Err(error) })
        }
        other => node.call(other),
    });
    let semaphore = Locks::on_node(blind).unwrap().semaphore("s", 10);
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    for free in 0..10 {
        let guard = held.remove(free);
        let name = name_of(&guard);
        guard.release().await.unwrap();
        let guard = semaphore.try_acquire().await.unwrap().unwrap();
        assert_eq!(name_of(&guard), name);
        held.insert(free, guard);
    }
}

/// A client whose requests to acquire are counted.
fn counting(node: &EmbeddedNode) -> (Locks, Arc<AtomicU64>) {
    let acquires = Arc::new(AtomicU64::new(0));
    let counter = acquires.clone();
    let node = Intercept::new(node.clone()).on_call(move |node, request| {
        if matches!(request, Request::Acquire(_)) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        node.call(request)
    });
    (Locks::on_node(node).unwrap(), acquires)
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_try_what_it_holds_and_begins_with_what_it_had() {
    let node = EmbeddedNode::new().latency(LATENCY);
    let (locks, acquires) = counting(&node);
    let semaphore = locks.semaphore("s", 10);
    let mut guards = Vec::new();
    for _ in 0..10 {
        guards.push(semaphore.acquire().await.unwrap());
    }
    assert_eq!(acquires.load(Ordering::SeqCst), 10);
    // The only one that is free is not always found by the first request. From then on it is.
    guards.pop().unwrap().release().await.unwrap();
    let (other, acquires) = counting(&node);
    let semaphore = other.semaphore("s", 10);
    semaphore.acquire().await.unwrap().release().await.unwrap();
    let before = acquires.load(Ordering::SeqCst);
    for _ in 0..5 {
        semaphore.acquire().await.unwrap().release().await.unwrap();
    }
    assert_eq!(acquires.load(Ordering::SeqCst), before + 5);
}

/// Twenty clients that do not know of each other have the same permit with a probability of 10 ^ -19.
#[tokio::test(start_paused = true)]
async fn clients_begin_at_different_permits() {
    let nodes = nodes(1);
    let mut names = BTreeSet::new();
    for _ in 0..20 {
        let guard = client(&nodes).semaphore("s", 10).acquire().await.unwrap();
        names.insert(name_of(&guard));
        guard.release().await.unwrap();
    }
    assert!(1 < names.len(), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_try_ends_with_its_wait() {
    let nodes = nodes(3);
    let semaphore = client(&nodes).semaphore("s", 10).wait(millis(100));
    nodes.iter().for_each(EmbeddedNode::pause);
    let began = Instant::now();
    let error = semaphore.acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
    assert_eq!(began.elapsed(), millis(100));
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_a_try_fails_at_once() {
    let nodes = nodes(3);
    let semaphore = client(&nodes).semaphore("s", 10);
    nodes[..2].iter().for_each(EmbeddedNode::kill);
    let began = Instant::now();
    let error = semaphore.try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
    assert!(began.elapsed() < secs(4), "{:?}", began.elapsed());
}
