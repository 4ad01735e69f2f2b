//! Tries, which do not wait.

use futures_util::future::join_all;
use quorlock::{AcquireError, EmbeddedNode};
use quorlock_core::node::Held;
use tokio::time::Instant;

use super::{SOON, all_of, name_of};
use crate::failures::support::{LATENCY, client, foreign, name, nodes, secs, settle};

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
            // Without an order of tries: a try, a look, and a try. With nodes that disagree, some more tries.
            if trouble == "" {
                assert!(began.elapsed() <= LATENCY * 3, "{:?}", began.elapsed());
            }
        }
    }
}

fn take_away(node: &EmbeddedNode, permit: &str) {
    crate::failures::support::take_away(node, permit);
}

#[tokio::test(start_paused = true)]
async fn a_try_that_finds_every_permit_held_is_over_after_two_round_trips() {
    for many in [1, 3, 5] {
        let nodes = nodes(many);
        let _held = all_of(&client(&nodes).semaphore("s", 10)).await;
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
        let clients: Vec<_> = (0..6).map(|_| client(&nodes)).collect();
        for round in 0..50 {
            let tries = clients.iter().map(|locks| {
                let semaphore = locks.semaphore(format!("job/{round}"), 3);
                async move { semaphore.try_acquire().await.unwrap() }
            });
            let tried = join_all(tries).await;
            assert_eq!(tried.iter().flatten().count(), 3, "{many}, {round}");
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
