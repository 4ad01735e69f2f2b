//! Bug stories about Redis itself: connections, wake-ups, replies and keys that stay.
//!
//! A test named `story_NN_..` shows one of the ways in which lock libraries have failed their users.

use std::time::Duration;

use quorlock::{AcquireError, Guard, Locks, Mode, ReleaseError, RetryPolicy};
use quorlock_testbed::proxy::Proxy;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{
    acquire_at_last, claim_of, client, is_claimed_by, locks_on, settings,
};

server_tests![
    story_06_a_release_whose_reply_is_lost_is_not_called_not_held,
    story_11_a_waiter_whose_subscription_is_killed_is_woken,
    story_11_a_waiter_survives_a_restart_of_its_server,
    story_12_waiting_leaves_no_subscriptions_and_no_connections,
    story_15_a_lost_reply_sends_no_acquisition_twice_and_leaves_no_key,
    story_25_every_key_has_an_expiry_at_every_moment,
    story_25_a_claim_without_an_expiry_is_asked_for_again,
    story_30_a_read_write_lock_under_the_name_is_named,
];

/// A lease that outlasts every test, so that a client that waits for its end fails.
const LEASE: Duration = Duration::from_secs(60);

/// An unlock whose reply was lost was sent again, and reported that the lock had not been held. Here, the release
/// works and is reported as not confirmed.
async fn story_06_a_release_whose_reply_is_lost_is_not_called_not_held() {
    let server = Server::start();
    let proxy = Proxy::to(&server).await;
    let locks = client(&proxy.address()).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    proxy.lose_replies();
    let error = guard.release().await.unwrap_err();
    let ReleaseError::Unconfirmed { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(nodes.len(), 1);
    until("the release was executed", || {
        claim_of(&server, "a").is_none()
    })
    .await;
    proxy.carry_replies();
    until("the client has found that out", || locks.held() == 0).await;
}

/// Returns a client that tries again only when it is woken or has another reason.
async fn patient(server: &Server) -> Locks {
    let retry = RetryPolicy::default().poll_cap(LEASE);
    let connected = settings().retry(retry).connect(server.address()).await;
    connected.unwrap()
}

fn wait_in_background(locks: &Locks) -> tokio::task::JoinHandle<Guard> {
    let lock = locks.lock("a");
    tokio::spawn(async move { lock.acquire().await.unwrap() })
}

fn subscribers(server: &Server) -> u32 {
    let channel = "redisson_lock__channel:{a}";
    let (_, count): (String, u32) = server.command(&["PUBSUB", "NUMSUB", channel]);
    count
}

/// The connection with the subscription was lost, and with it the message of the unlock. The waiter slept until the
/// lease would have ended, although the lock was free. Here, the waiter asks whenever its subscription is restored.
async fn story_11_a_waiter_whose_subscription_is_killed_is_woken() {
    let server = Server::start();
    let holder = locks_on(&server).await.lock("a").lease(LEASE);
    let held = holder.acquire().await.unwrap();
    let waiting = wait_in_background(&patient(&server).await);
    until("somebody waits", || subscribers(&server) == 1).await;
    // Both happen at the same time, so no listener receives the release.
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("pubsub");
    let mut both = redis::pipe();
    both.atomic().add_command(kill).cmd("DEL").arg("a");
    let answer: (u32, u32) = both.query(&mut server.connect().unwrap()).unwrap();
    assert_eq!(answer, (1, 1));
    let guard = tokio::time::timeout(BOUND, waiting).await.unwrap().unwrap();
    assert!(is_claimed_by(&server, "a", &guard));
    held.leak();
}

/// Subscriptions were not restored after a server had restarted. Here, the lock that the server lost is granted at
/// once.
async fn story_11_a_waiter_survives_a_restart_of_its_server() {
    let server = Server::start();
    let held = locks_on(&server).await.lock("a").lease(LEASE);
    let held = held.acquire().await.unwrap();
    let waiting = wait_in_background(&patient(&server).await);
    until("somebody waits", || subscribers(&server) == 1).await;
    server.kill();
    server.restart();
    let guard = tokio::time::timeout(BOUND, waiting).await.unwrap().unwrap();
    assert!(is_claimed_by(&server, "a", &guard));
    drop(held);
}

/// Every wait used up subscription resources, which some paths did not free, until no lock could be waited for. Here,
/// after hundreds of waits that won, gave up or were dropped, there are as many resources as before.
async fn story_12_waiting_leaves_no_subscriptions_and_no_connections() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    let other = locks_on(&server).await;
    for turn in 0..60 {
        let held = other.lock("a").acquire().await.unwrap();
        let waits: Vec<_> = (0..6)
            .map(|place| {
                let lock = locks.lock("a");
                let lock = if place % 2 == 0 {
                    lock.wait(Duration::from_millis(1))
                } else {
                    lock
                };
                tokio::spawn(async move { lock.acquire().await.map(drop) })
            })
            .collect();
        if turn % 3 == 0 {
            until("somebody waits", || subscribers(&server) == 1).await;
        }
        waits[5].abort();
        held.release().await.unwrap();
        for wait in waits {
            let _ = wait.await;
        }
    }
    let channels = || server.command::<Vec<String>>(&["PUBSUB", "CHANNELS"]);
    until("no client listens any more", || channels().is_empty()).await;
    let clients: String = server.command(&["CLIENT", "LIST"]);
    // Each client has one connection for requests and one for wake-ups, and the test has its own.
    assert!(clients.lines().count() <= 5, "{clients}");
    until("everything is given back", || {
        claim_of(&server, "a").is_none()
    })
    .await;
}

/// Returns the scripts that the server has run for a name with this lease.
fn acquisitions(server: &Server, name: &str, lease: Duration) -> usize {
    type Entry = (i64, i64, i64, Vec<String>, String, String);
    let log: Vec<Entry> = server.command(&["SLOWLOG", "GET", "100"]);
    let lease = lease.as_millis().to_string();
    let is_one = |(_, _, _, words, ..): &&Entry| {
        let is_script = words[0].starts_with("EVAL");
        is_script && words.iter().any(|word| word == name) && words.contains(&lease)
    };
    log.iter().filter(is_one).count()
}

/// A client library resent `SET NX` by itself after a lost reply. The first one had worked, the second one reported
/// that the name was taken, and the key belonged to no client. Here, nothing is resent, and what may have been granted
/// is released.
async fn story_15_a_lost_reply_sends_no_acquisition_twice_and_leaves_no_key() {
    let server = Server::start_with(&["--slowlog-log-slower-than", "0"]);
    let proxy = Proxy::to(&server).await;
    let locks = client(&proxy.address()).await;
    drop(locks.lock("warm-up").acquire().await.unwrap());
    until("the warm-up is over", || {
        claim_of(&server, "warm-up").is_none()
    })
    .await;
    proxy.lose_replies();
    let lock = locks.lock("a").lease(LEASE);
    let trying = tokio::spawn(async move { lock.try_acquire().await.map(drop) });
    until("it was executed", || claim_of(&server, "a").is_some()).await;
    let error = trying.await.unwrap().unwrap_err();
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(nodes.len(), 1);
    proxy.carry_replies();
    until("the claim is given back", || {
        claim_of(&server, "a").is_none()
    })
    .await;
    assert_eq!(acquisitions(&server, "a", LEASE), 1);
    assert!(acquire_at_last(&locks.lock("a")).await.is_held());
}

/// Returns the TTL of each key: claims, counters, and any others.
fn ttls(server: &Server) -> Vec<(String, i64)> {
    let keys: Vec<String> = server.command(&["KEYS", "*"]);
    let ttl = |key: String| {
        let ttl = server.command(&["PTTL", &key]);
        (key, ttl)
    };
    keys.into_iter().map(ttl).collect()
}

#[track_caller]
fn assert_all_expire(server: &Server) {
    for (key, ttl) in ttls(server) {
        // -2: the key was gone when its TTL was read.
        assert!(0 <= ttl || ttl == -2, "{key} never expires");
    }
}

/// A lock without an expiry stayed forever when its holder died between two commands, or by default. Here, every key
/// has an expiry, whatever is done with the lock.
async fn story_25_every_key_has_an_expiry_at_every_moment() {
    let server = Server::start();
    let locks = settings().watchdog_lease(Duration::from_secs(6));
    let locks = locks.connect(server.address()).await.unwrap();
    let both = locks.all(["a", "b"]);
    let guard = both.acquire().await.unwrap();
    assert_all_expire(&server);
    let inner = guard.reenter().await.unwrap();
    assert_all_expire(&server);
    guard.extend(Duration::from_secs(20)).await.unwrap();
    assert_all_expire(&server);
    inner.release().await.unwrap();
    assert_all_expire(&server);
    let ttl = || server.command::<i64>(&["PTTL", "a"]);
    assert!(ttl() <= 20_000);
    server.command::<()>(&["PEXPIRE", "a", "9000"]);
    until("a renewal", || 9_000 < ttl()).await;
    assert!(ttl() <= 20_000);
    assert_all_expire(&server);
    drop(guard);
    until("the release", || claim_of(&server, "a").is_none()).await;
    assert_all_expire(&server);
    // If a holder dies without a release, its key expires.
    let lock = locks.lock("c").lease(Duration::from_millis(600));
    lock.acquire().await.unwrap().leak();
    until("the end of the lease", || claim_of(&server, "c").is_none()).await;
    assert_all_expire(&server);
}

/// Another program's lock without an expiry is waited for as long as it exists, and no longer.
async fn story_25_a_claim_without_an_expiry_is_asked_for_again() {
    let server = Server::start();
    let owner = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31";
    server.command::<()>(&["HSET", "a", owner, "1"]);
    let retry = RetryPolicy::default().poll_cap(Duration::from_millis(100));
    let locks = settings().retry(retry).connect(server.address()).await;
    let locks = locks.unwrap();
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    let waiting = wait_in_background(&locks);
    until("somebody waits", || subscribers(&server) == 1).await;
    // Nothing is published, and nothing expires.
    server.command::<()>(&["DEL", "a"]);
    let guard = tokio::time::timeout(BOUND, waiting).await.unwrap().unwrap();
    assert!(guard.is_held());
    assert_all_expire(&server);
}

/// A plain lock and a read-write lock of one name, as a JVM client keeps them, did not exclude each other in one order.
async fn story_30_a_read_write_lock_under_the_name_is_named() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    let reader = "0fb4a3e4-4b32-4d3b-9d5e-3a2b1c0d9e8f:31";
    let writer = format!("{reader}:write");
    for (mode, field, found) in [
        ("read", reader, Mode::Read),
        ("write", &writer, Mode::Write),
    ] {
        server.command::<()>(&["HSET", "a", "mode", mode, field, "1"]);
        server.command::<()>(&["PEXPIRE", "a", "30000"]);
        let error = locks.lock("a").acquire().await.unwrap_err();
        let names = "a".to_owned();
        let asked = Mode::Plain;
        assert_eq!(
            error,
            AcquireError::OtherMode {
                names,
                asked,
                found
            }
        );
        assert_eq!(server.command::<u32>(&["HLEN", "a"]), 2);
        server.command::<()>(&["DEL", "a"]);
    }
    assert!(locks.lock("a").acquire().await.unwrap().is_held());
}
