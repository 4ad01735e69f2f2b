//! How many hold it, and what each of them has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use quorlock::{AcquireError, Locks, Lost};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::time::{sleep, timeout};

use super::{all_of, name_of, release};
use crate::failures::support::{LATENCY, assert_empty, client, millis, nodes, secs, settle};

#[tokio::test(start_paused = true)]
async fn as_many_hold_it_as_there_are_permits_and_never_one_more() {
    for (many, permits) in [(1, 1), (1, 3), (3, 2), (3, 3), (5, 10)] {
        let nodes = nodes(many);
        let (ours, theirs) = (client(&nodes), client(&nodes));
        let mut guards = Vec::new();
        for number in 0..permits {
            let locks = if number % 2 == 0 { &ours } else { &theirs };
            guards.push(locks.semaphore("s", permits).acquire().await.unwrap());
        }
        for locks in [&ours, &theirs] {
            let semaphore = locks.semaphore("s", permits);
            assert!(semaphore.try_acquire().await.unwrap().is_none());
            let late = semaphore.wait(millis(200)).acquire().await;
            assert!(matches!(late, Err(AcquireError::Contended { .. })));
        }
        assert!(guards.iter().all(|guard| guard.is_held()));
        release(guards.drain(1..)).await;
        let again = theirs.semaphore("s", permits).try_acquire().await.unwrap();
        assert_eq!(again.is_some(), 1 < permits);
        release(guards.into_iter().chain(again)).await;
        settle().await;
        assert_empty(&nodes);
    }
}

/// Why each permit is a lock with a majority of its own. If nodes only counted, as these three do, each for itself, three clients
/// could each have two of three nodes.
#[tokio::test(start_paused = true)]
async fn of_a_majority_of_counters_there_would_be_more_holders_than_permits() {
    let counter = |node| Locks::on_node(node).unwrap().semaphore("s", 2);
    let counters: Vec<_> = nodes(3).into_iter().map(counter).collect();
    let mut counted = Vec::new();
    for majority in [[0, 1], [1, 2], [2, 0]] {
        for node in majority {
            counted.push(counters[node].try_acquire().await.unwrap().unwrap());
        }
    }
    let majorities = counted.len() / 2;
    assert_eq!(majorities, 3); // with two permits
    let locks = client(&nodes(3)).semaphore("s", 2);
    let permitted = [locks.try_acquire().await, locks.try_acquire().await];
    assert!(
        permitted
            .iter()
            .all(|guard| guard.as_ref().unwrap().is_some())
    );
    assert!(locks.try_acquire().await.unwrap().is_none());
}

/// Callers of one process and of several, which hold it for random times, also while one node of three is down.
#[tokio::test(start_paused = true)]
async fn of_fifty_callers_never_more_than_three_hold_it() {
    for (many, clients, is_one_down) in [(1, 1, false), (1, 5, false), (3, 1, true), (3, 5, false)]
    {
        let nodes = nodes(many);
        let clients: Vec<_> = (0..clients).map(|_| client(&nodes)).collect();
        if is_one_down {
            nodes[1].kill();
        }
        let holders = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let callers = (0..50).map(|number| {
            let semaphore = clients[number % clients.len()].semaphore("s", 3);
            let (holders, most) = (holders.clone(), most.clone());
            tokio::spawn(async move {
                let mut random = StdRng::seed_from_u64(number as u64);
                for _ in 0..10 {
                    let guard = semaphore.acquire().await.unwrap();
                    most.fetch_max(holders.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep(LATENCY * random.random_range(0..10)).await;
                    assert!(guard.is_held());
                    holders.fetch_sub(1, Ordering::SeqCst);
                    guard.release().await.unwrap();
                    sleep(LATENCY * random.random_range(0..10)).await;
                }
            })
        });
        let ended = timeout(secs(600), join_all(callers)).await.unwrap();
        ended.into_iter().for_each(Result::unwrap);
        assert_eq!(most.load(Ordering::SeqCst), 3, "{many} nodes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_an_ordinary_lock_that_is_renewed_and_can_be_lost() {
    let nodes = nodes(3);
    let locks = client(&nodes);
    let semaphore = locks.semaphore("s", 2);
    assert_eq!((semaphore.name(), semaphore.permits()), (&b"s"[..], 2));
    let guards = all_of(&semaphore).await;
    let names: Vec<_> = guards.iter().map(name_of).collect();
    assert_eq!(names, ["{s}:permit:0", "{s}:permit:1"]);
    sleep(secs(100)).await;
    assert!(guards.iter().all(|guard| guard.is_held()));

    client(&nodes).force_release("{s}:permit:1").await.unwrap();
    assert_eq!(guards[1].lost().await, Lost::Taken);
    assert!(guards[0].is_held());
    let next = semaphore.try_acquire().await.unwrap().unwrap();
    assert_eq!(name_of(&next), "{s}:permit:1");
    assert!(guards[1].fencing_token() < next.fencing_token());

    let short = semaphore.clone().lease(millis(200));
    drop(next);
    let fixed = short.acquire().await.unwrap();
    assert_eq!(fixed.lost().await, Lost::Expired);
    let stays = semaphore.at_least(secs(5)).acquire().await.unwrap();
    stays.release().await.unwrap();
    let again = locks.semaphore("s", 2);
    assert!(again.try_acquire().await.unwrap().is_none());
    sleep(secs(6)).await;
    assert!(again.try_acquire().await.unwrap().is_some());
}

/// Two that are held are not disturbed by a client that has one permit: it waits until the first of them is free.
#[tokio::test(start_paused = true)]
async fn a_smaller_number_counts_when_the_others_have_released() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let before = all_of(&client(&nodes).semaphore("s", 3)).await;
        let after = client(&nodes).semaphore("s", 1);
        assert!(after.try_acquire().await.unwrap().is_none());
        let [first, rest @ ..] = before.try_into().map(|all: [_; 3]| all).unwrap();
        first.release().await.unwrap();
        let guard = after.acquire().await.unwrap();
        assert!(rest.iter().all(|guard| guard.is_held()), "three hold it");
        release(rest).await;
        assert!(after.try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        assert!(after.try_acquire().await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_larger_number_counts_at_once() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let before = all_of(&locks.semaphore("s", 1)).await;
        let after = client(&nodes).semaphore("s", 3);
        let more = [
            after.acquire().await.unwrap(),
            after.acquire().await.unwrap(),
        ];
        assert!(after.try_acquire().await.unwrap().is_none());
        assert!(
            locks
                .semaphore("s", 3)
                .try_acquire()
                .await
                .unwrap()
                .is_none()
        );
        release(before.into_iter().chain(more)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_holds_one_permit_and_enters_it_again() {
    for many in [1, 3] {
        let nodes = nodes(many);
        let locks = client(&nodes);
        let owner = locks.owner();
        // At once, and with different numbers: each would get a permit of its own if they did not know of each other.
        let (small, large) = (owner.semaphore("s", 2), owner.semaphore("s", 5));
        let entered = join_all([small.acquire(), large.acquire(), small.acquire()]).await;
        let guards: Vec<_> = entered.into_iter().map(Result::unwrap).collect();
        assert!(guards.iter().all(|guard| guard.hold_count() == 3));
        let tried = large.try_acquire().await.unwrap().unwrap();
        assert_eq!(name_of(&tried), name_of(&guards[0]));
        let other = locks.owner().semaphore("s", 2).acquire().await.unwrap();
        assert_ne!(name_of(&other), name_of(&tried));
        let third = locks.owner().semaphore("s", 2).wait(millis(100));
        let error = third.acquire().await.unwrap_err().to_string();
        assert!(
            error.starts_with("all 2 permits of \"s\": held by"),
            "{error}"
        );

        let name = name_of(&tried);
        client(&nodes).force_release(&name).await.unwrap();
        assert_eq!(tried.lost().await, Lost::Taken);
        let anew = small.acquire().await.unwrap();
        assert_eq!(anew.hold_count(), 1);
        release([anew, other]).await;
    }
}

/// The names of permits are derived from a name that a lock may have, too.
#[tokio::test(start_paused = true)]
async fn the_permit_of_an_owner_is_no_lock_of_the_name_from_which_permits_have_theirs() {
    let nodes = nodes(1);
    let (ours, theirs) = (client(&nodes), client(&nodes));
    let held = theirs.lock("{s}:permit").acquire().await.unwrap();
    let owner = ours.owner();
    let permit = owner.semaphore("s", 2).acquire().await.unwrap();
    let lock = owner.lock("{s}:permit").try_acquire().await;
    assert!(!matches!(lock, Ok(Some(_))), "{lock:?}");
    release([held, permit]).await;
    let held = owner.lock("{s}:permit").acquire().await.unwrap();
    let all = theirs.semaphore("s", 2);
    let _all = [all.acquire().await.unwrap(), all.acquire().await.unwrap()];
    let permit = owner.semaphore("s", 2).try_acquire().await;
    assert!(!matches!(permit, Ok(Some(_))), "{permit:?}");
    release([held]).await;
}
