//! Holds that pass from one client to another.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test is the world: it waits by itself, and fails by panicking"
)]

use std::time::Duration;

use quorlock::errors::HandOverProblem;
use quorlock::operate::Summary;
use quorlock::transport::Intercept;
use quorlock::{EmbeddedNode, Guard, Lock, Locks, Lost, Ticket};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(9);

fn two(nodes: usize) -> (Vec<EmbeddedNode>, [Locks; 2]) {
    let nodes: Vec<_> = (0..nodes).map(|_| EmbeddedNode::new()).collect();
    let clients = [(); 2].map(|()| client(&nodes));
    (nodes, clients)
}

fn client(nodes: &[EmbeddedNode]) -> Locks {
    let builder = Locks::builder().watchdog_lease(LEASE);
    match nodes {
        [one] => builder.on_node(one.clone()).unwrap(),
        all => builder
            .trust_fresh_nodes()
            .on_nodes(all.iter().cloned())
            .unwrap(),
    }
}

async fn is_free(lock: &Lock) -> bool {
    match lock.try_acquire().await.unwrap() {
        None => false,
        Some(guard) => guard.release().await.is_ok(),
    }
}

/// Passes a guard on as text.
async fn pass_on(guard: Guard, to: &Locks) -> Option<Guard> {
    let text = guard.hand_over().unwrap().to_string();
    to.adopt(&text.parse().unwrap()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_hold_goes_on_in_another_client() {
    for nodes in [1, 3, 5] {
        let (_, [web, worker]) = two(nodes);
        let guard = web.lock("a").acquire().await.unwrap();
        let (token, lost) = (guard.fencing_token(), guard.lost());
        let adopted = pass_on(guard, &worker).await.unwrap();
        assert_eq!(lost.await, Lost::Released);
        assert!(token < adopted.fencing_token());
        assert_eq!((web.held(), worker.held()), (0, 1));
        web.close().await;
        // Renewed by the second client alone.
        sleep(4 * LEASE).await;
        assert!(adopted.is_held());
        let owner = adopted.owner_id().to_string();
        let held = worker.inspect("a").await.unwrap().summary();
        assert_eq!(held, Summary::Held { owner, nodes });
        adopted.release().await.unwrap();
        assert!(is_free(&worker.lock("a")).await);
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_clients_with_one_ticket_one_gets_it() {
    for count in [1, 3, 5] {
        let (nodes, [web, _]) = two(count);
        let guard = web.lock("a").acquire().await.unwrap();
        let ticket = guard.hand_over().unwrap();
        let clients: Vec<_> = (0..8).map(|_| client(&nodes)).collect();
        let adopting = clients.iter().map(|client| client.adopt(&ticket));
        let guards: Vec<_> = futures_util::future::join_all(adopting).await;
        let guards: Vec<_> = guards.into_iter().filter_map(Result::unwrap).collect();
        // On several nodes they may each get some, and none a majority.
        assert!(guards.len() <= 1 && (count != 1 || guards.len() == 1));
        for guard in guards {
            guard.release().await.unwrap();
        }
        // The ticket is worth nothing any more, although the name is free.
        sleep(LEASE).await;
        assert!(web.adopt(&ticket).await.unwrap().is_none());
        assert!(is_free(&web.lock("a")).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ticket_is_worth_nothing_after_its_lease() {
    for fixed in [true, false] {
        let (_, [web, worker]) = two(1);
        let lock = match fixed {
            true => web.lock("a").lease(LEASE),
            false => web.lock("a"),
        };
        let ticket = lock.acquire().await.unwrap().hand_over().unwrap();
        sleep(LEASE - Duration::from_millis(5)).await;
        assert!(!is_free(&worker.lock("a")).await);
        sleep(Duration::from_millis(10)).await;
        assert!(worker.adopt(&ticket).await.unwrap().is_none());
        let other = worker.lock("a").acquire().await.unwrap();
        assert!(web.adopt(&ticket).await.unwrap().is_none());
        assert!(other.is_held());
        other.release().await.unwrap();
    }
}

/// The lease that nothing renews stays one in the other process.
#[tokio::test(start_paused = true)]
async fn the_next_hold_is_renewed_if_the_one_before_was() {
    let (_, [web, worker]) = two(1);
    let guard = web.lock("a").lease(LEASE).acquire().await.unwrap();
    let adopted = pass_on(guard, &worker).await.unwrap();
    assert!(adopted.validity() <= LEASE);
    assert_eq!(adopted.lost().await, Lost::Expired);
}

#[tokio::test(start_paused = true)]
async fn fair_and_write_locks_and_several_names_pass_on() {
    let (_, [web, worker]) = two(1);
    let locks = [
        web.fair("fair"),
        web.write("write"),
        web.all(["b", "a", "{c}"]),
        web.fair("next").and([web.write("one"), web.lock("two")]),
    ];
    for lock in locks {
        let guard = lock.acquire().await.unwrap();
        let tokens = |guard: &Guard| -> Vec<_> {
            guard
                .names()
                .map(|name| guard.fencing_token_of(name.as_bytes()))
                .collect()
        };
        let before = tokens(&guard);
        let adopted = pass_on(guard, &worker).await.unwrap();
        for (before, after) in before.iter().zip(tokens(&adopted)) {
            assert!(*before < after, "{adopted:?}");
        }
        sleep(2 * LEASE).await;
        adopted.release().await.unwrap();
        assert!(is_free(&lock).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_cannot_be_handed_over_is_kept() {
    let (_, [web, worker]) = two(1);
    let both = web
        .lock("a")
        .and([client(&[EmbeddedNode::new()]).lock("b")]);
    let owner = web.owner();
    let writing = owner.write("w").acquire().await.unwrap();
    let reading = owner.read("w").acquire().await.unwrap();
    let shared = web.lock("s").acquire().await.unwrap();
    let _again = shared.reenter().await.unwrap();
    for (guard, expected) in [
        (
            both.acquire().await.unwrap(),
            HandOverProblem::SeveralClients,
        ),
        (writing, HandOverProblem::Shared),
        (reading, HandOverProblem::Reads),
        (shared, HandOverProblem::Shared),
    ] {
        let error = guard.hand_over().unwrap_err();
        assert_eq!(error.problem, expected);
        assert!(error.guard.is_held(), "{error}");
        error.guard.release().await.unwrap();
    }
    let lost = web.lock("l").lease(LEASE).acquire().await.unwrap();
    sleep(LEASE).await;
    let problem = lost.hand_over().unwrap_err().problem;
    assert_eq!(problem, HandOverProblem::Lost(Lost::Expired));
    assert_eq!(worker.held(), 0);
}

/// What a node has passed on is free after a failure, or stays with its lease: it never goes to anyone else in between.
#[tokio::test(start_paused = true)]
async fn a_ticket_for_a_majority_survives_a_node_that_forgot() {
    let (nodes, [web, worker]) = two(3);
    let guard = web.lock("a").acquire().await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let ticket = guard.hand_over().unwrap();
    nodes[0].flush();
    let adopted = worker.adopt(&ticket).await.unwrap().unwrap();
    sleep(4 * LEASE).await;
    // The node that forgot has nothing to pass on, and has granted the name to the next holder.
    let owner = adopted.owner_id().to_string();
    let held = worker.inspect("a").await.unwrap().summary();
    assert_eq!(held, Summary::Held { owner, nodes: 3 });
    adopted.release().await.unwrap();
}

/// A renewal of the client that handed over is still on its way, and arrives after the hold has passed on.
#[tokio::test(start_paused = true)]
async fn a_late_renewal_changes_nothing() {
    let node = EmbeddedNode::new();
    let slow = Intercept::new(node.clone()).on_call(|node, request| {
        let node = node.clone();
        Box::pin(async move {
            if matches!(request, quorlock::transport::Request::Renew(_)) {
                sleep(Duration::from_secs(1)).await;
            }
            quorlock::transport::Transport::call(&node, request).await
        })
    });
    let web = Locks::builder()
        .watchdog_lease(LEASE)
        .on_node(slow)
        .unwrap();
    let worker = client(&[node]);
    let guard = web.lock("a").acquire().await.unwrap();
    sleep(LEASE / 3 + Duration::from_millis(500)).await;
    let adopted = pass_on(guard, &worker).await.unwrap();
    sleep(3 * LEASE).await;
    assert!(adopted.is_held());
    assert!(!is_free(&web.lock("a")).await);
    adopted.release().await.unwrap();
    assert!(is_free(&web.lock("a")).await);
}

/// The release of a reader that is dropped is sent later than the ticket.
#[tokio::test(start_paused = true)]
async fn a_writer_that_has_just_stopped_reading_passes_on() {
    let (_, [web, worker]) = two(1);
    let owner = web.owner();
    let writing = owner.write("w").acquire().await.unwrap();
    let reading = owner.read("w").acquire().await.unwrap();
    drop(reading);
    let adopted = pass_on(writing, &worker).await.unwrap();
    assert!(worker.read("w").try_acquire().await.unwrap().is_none());
    sleep(2 * LEASE).await;
    adopted.release().await.unwrap();
    assert!(is_free(&web.write("w")).await);
}

#[tokio::test(start_paused = true)]
async fn clients_of_other_nodes_or_names_find_nothing() {
    let (nodes, [web, _]) = two(1);
    let ticket = web.lock("a").acquire().await.unwrap().hand_over().unwrap();
    let elsewhere = client(&[EmbeddedNode::new()]);
    let prefixed = Locks::builder()
        .key_prefix("other:")
        .on_node(nodes[0].clone())
        .unwrap();
    for locks in [elsewhere, prefixed] {
        assert!(locks.adopt(&ticket).await.unwrap().is_none());
    }
    let closed = client(&nodes);
    closed.close().await;
    assert!(closed.adopt(&ticket).await.is_err());
    assert!(web.adopt(&ticket).await.unwrap().is_some());
}

#[test]
fn a_blocking_client_hands_over_and_adopts() {
    use quorlock::blocking::Locks;

    let node = EmbeddedNode::new();
    let start = || {
        let node = node.clone();
        Locks::start(async move || quorlock::Locks::on_node(node)).unwrap()
    };
    let (web, worker) = (start(), start());
    let guard = web.lock("a").acquire().unwrap();
    let again = guard.reenter().unwrap();
    let error = guard.hand_over().unwrap_err();
    assert!(error.guard.is_held());
    again.release().unwrap();
    let text = error.guard.hand_over().unwrap().to_string();
    let ticket: Ticket = text.parse().unwrap();
    let adopted = worker.adopt(&ticket).unwrap().unwrap();
    adopted.release().unwrap();
    assert!(web.adopt(&ticket).unwrap().is_none());
}
