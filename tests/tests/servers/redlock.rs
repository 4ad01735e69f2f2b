//! Tests a majority of five servers, some of which are killed, stopped, resumed and restarted.

use std::time::Duration;

use quorlock::{AcquireError, Guard, Locks, Lost, ReleaseError};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{acquire_at_last, claim_of, is_claimed_by, quorum_of, settings};

server_tests![
    a_lock_of_five_outlives_the_death_of_two,
    a_lock_of_five_is_taken_while_two_are_dead,
    a_restarted_server_joins_the_hold,
    a_stopped_minority_holds_nothing_up_and_keeps_no_orphan,
    a_minority_that_stops_in_the_middle_keeps_no_orphan,
    without_a_majority_the_error_names_each_server,
    a_stopped_majority_loses_the_lock_in_time,
    a_majority_that_stops_during_a_release_leaves_no_lock_behind,
];

fn five() -> Vec<Server> {
    std::iter::repeat_with(Server::start).take(5).collect()
}

/// Returns a client whose watchdog renews so often that a test can observe it.
async fn watchful(servers: &[Server]) -> Locks {
    let settings = settings().watchdog_lease(Duration::from_secs(3));
    let connected = settings.quorum(servers.iter().map(Server::address)).await;
    connected.unwrap()
}

fn claims(servers: &[Server], guard: &Guard) -> usize {
    let is_ours = |server: &&Server| is_claimed_by(server, "a", guard);
    servers.iter().filter(is_ours).count()
}

async fn renewals(guard: &Guard, many: usize) {
    for _ in 0..many {
        until("less is left of the lease", || {
            guard.validity() < Duration::from_millis(2_200)
        })
        .await;
        until("it is renewed", || {
            Duration::from_millis(2_400) < guard.validity()
        })
        .await;
        assert!(guard.is_held());
    }
}

async fn until_free(servers: &[Server]) {
    until("no key is left", || {
        servers.iter().all(|server| claim_of(server, "a").is_none())
    })
    .await;
}

async fn a_lock_of_five_outlives_the_death_of_two() {
    let servers = five();
    let locks = watchful(&servers).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    servers[0].kill();
    servers[3].kill();
    renewals(&guard, 2).await;
    let other = quorum_of(&servers).await;
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
    until_free(&servers).await;
    let next = acquire_at_last(&other.lock("a")).await;
    assert_eq!(claims(&servers, &next), 3);
}

async fn a_lock_of_five_is_taken_while_two_are_dead() {
    let servers = five();
    let locks = quorum_of(&servers).await;
    servers[1].kill();
    servers[4].kill();
    let mut last = None;
    for _ in 0..5 {
        let guard = locks.lock("a").acquire().await.unwrap();
        assert!(last < Some(guard.fencing_token()));
        last = Some(guard.fencing_token());
        guard.release().await.unwrap();
    }
    until_free(&servers).await;
}

async fn a_restarted_server_joins_the_hold() {
    let servers = five();
    let locks = watchful(&servers).await;
    servers[2].kill();
    let guard = locks.lock("a").acquire().await.unwrap();
    servers[2].restart();
    until("all five have the claim", || claims(&servers, &guard) == 5).await;
    guard.release().await.unwrap();
    until_free(&servers).await;
}

async fn a_stopped_minority_holds_nothing_up_and_keeps_no_orphan() {
    let servers = five();
    let locks = quorum_of(&servers).await;
    let other = quorum_of(&servers).await;
    servers[0].pause();
    servers[1].pause();
    let lock = locks.lock("a").lease(Duration::from_secs(5));
    for _ in 0..5 {
        let guard = lock.acquire().await.unwrap();
        assert_eq!(claims(&servers[2..], &guard), 3);
        guard.release().await.unwrap();
    }
    let guard = acquire_at_last(&other.lock("a")).await;
    servers[0].resume();
    servers[1].resume();
    // The resumed servers execute the requests that had arrived: claims of the first client. These are then released,
    // or their leases end.
    until("no other client's claim is left", || {
        servers
            .iter()
            .all(|server| claim_of(server, "a").is_none() || is_claimed_by(server, "a", &guard))
    })
    .await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    until_free(&servers).await;
}

async fn a_minority_that_stops_in_the_middle_keeps_no_orphan() {
    let servers = five();
    let locks = watchful(&servers).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    until("all five have the claim", || claims(&servers, &guard) == 5).await;
    servers[3].pause();
    servers[4].pause();
    renewals(&guard, 1).await;
    guard.release().await.unwrap();
    let next = acquire_at_last(&locks.lock("a")).await;
    servers[3].resume();
    servers[4].resume();
    until("all five are the next one's", || {
        claims(&servers, &next) == 5
    })
    .await;
    assert!(next.is_held());
}

async fn without_a_majority_the_error_names_each_server() {
    let servers = five();
    let locks = quorum_of(&servers).await;
    for server in &servers[..3] {
        server.kill();
    }
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}")
    };
    // The other nodes may not have answered by the time three had failed.
    let failed: Vec<_> = nodes.iter().filter(|node| node.error.is_some()).collect();
    assert_eq!(failed.len(), 3);
    for server in &servers[..3] {
        let port = server.port().to_string();
        assert!(failed.iter().any(|node| node.address.contains(&port)));
        assert!(error.to_string().contains(&port));
    }
    until_free(&servers).await;
    servers[0].restart();
    let guard = acquire_at_last(&locks.lock("a")).await;
    assert_eq!(claims(&servers, &guard), 3);
}

async fn a_stopped_majority_loses_the_lock_in_time() {
    let servers = five();
    let locks = watchful(&servers).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    until("all five have the claim", || claims(&servers, &guard) == 5).await;
    for server in &servers[..3] {
        server.pause();
    }
    let work = std::future::pending::<()>();
    let lost = tokio::time::timeout(BOUND, guard.while_held(async |_| work.await)).await;
    assert_eq!(lost.unwrap(), Err(Lost::Unreachable));
    for server in &servers[..3] {
        server.resume();
    }
    until_free(&servers).await;
    let next = acquire_at_last(&locks.lock("a")).await;
    until("all five are the next one's", || {
        claims(&servers, &next) == 5
    })
    .await;
}

async fn a_majority_that_stops_during_a_release_leaves_no_lock_behind() {
    let servers = five();
    let locks = quorum_of(&servers).await;
    let lock = locks.lock("a").lease(Duration::from_secs(4));
    let guard = lock.acquire().await.unwrap();
    for server in &servers[..3] {
        server.pause();
    }
    let error = guard.release().await.unwrap_err();
    let ReleaseError::Unconfirmed { nodes, .. } = &error else {
        panic!("{error}")
    };
    // A server that had not answered the acquisition before it stopped is not asked again.
    assert!(!nodes.is_empty());
    for node in nodes {
        let is_stopped = |server: &Server| node.address.contains(&server.port().to_string());
        assert!(servers[..3].iter().any(is_stopped), "{error}");
    }
    for server in &servers[..3] {
        server.resume();
    }
    until_free(&servers).await;
    let next = acquire_at_last(&locks.lock("a")).await;
    assert!(next.is_held());
}
