//! Tests locks over connections of the `redis` crate that the caller has made, and also uses for other work.

use std::time::Duration;

use quorlock::redis::{ConnectionLike, RedisClient, SharedConnection};
use quorlock::transport::Cause;
use quorlock::{AcquireError, Guard, Locks, Lost, RetryPolicy};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{is_claimed_by, settings, until_renewed};
use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;

server_tests![
    a_multiplexed_connection_carries_locks_beside_other_work,
    a_connection_manager_carries_locks_over_a_restart,
    three_connections_are_a_majority,
    a_waiter_without_wake_ups_asks_again,
    the_words_of_the_server_reach_the_caller,
    scripts_that_were_flushed_are_sent_again,
    a_server_that_is_silent_is_an_error_within_the_call_time_out,
];

async fn connection(server: &Server) -> MultiplexedConnection {
    let client = RedisClient::open(server.address()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Short, so that tests see renewals.
const LEASE: Duration = Duration::from_secs(3);

/// A client of one server over this connection.
fn over(connection: impl ConnectionLike + Clone + Send + Sync + 'static) -> Locks {
    let node = SharedConnection::new(connection, "redis-a");
    settings().watchdog_lease(LEASE).on_node(node).unwrap()
}

async fn hold(locks: &Locks, name: &str) -> Guard {
    locks.lock(name).wait(BOUND).acquire().await.unwrap()
}

async fn a_multiplexed_connection_carries_locks_beside_other_work() {
    let server = Server::start();
    let mut connection = connection(&server).await;
    let locks = over(connection.clone());
    let guard = hold(&locks, "a").await;
    assert!(is_claimed_by(&server, "a", &guard));
    let () = connection.set("other", 1).await.unwrap();
    // A client with connections of its own finds it held, and is woken by its release.
    let theirs = settings().connect(&server.address()).await.unwrap();
    assert!(theirs.lock("a").try_acquire().await.unwrap().is_none());
    until_renewed(&guard).await;
    let lock = theirs.lock("a");
    let waiting = tokio::spawn(async move { lock.acquire().await });
    until("there is a listener", || {
        let channels: Vec<String> = server.command(&["PUBSUB", "CHANNELS"]);
        !channels.is_empty()
    })
    .await;
    guard.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    // Fair locks, and locks for readers and writers, are carried as well.
    let turn = locks.fair("b").acquire().await.unwrap();
    let reader = locks.read("c").acquire().await.unwrap();
    assert!(locks.write("c").try_acquire().await.unwrap().is_none());
    for guard in [turn, reader, next] {
        guard.release().await.unwrap();
    }
    let inspection = locks.inspect("a").await.unwrap();
    assert!(inspection.to_string().contains("redis-a"), "{inspection}");
}

async fn a_connection_manager_carries_locks_over_a_restart() {
    let server = Server::start();
    let client = RedisClient::open(server.address()).unwrap();
    let manager = client.get_connection_manager().await.unwrap();
    let locks = over(manager);
    let guard = hold(&locks, "a").await;
    server.kill();
    let error = locks.lock("b").try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::NoQuorum { .. }), "{error}");
    server.restart();
    // The server has kept nothing.
    assert_eq!(guard.lost().await, Lost::Taken);
    hold(&locks, "a").await.release().await.unwrap();
}

async fn three_connections_are_a_majority() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let mut nodes = Vec::new();
    for (server, name) in servers.iter().zip(["redis-a", "redis-b", "redis-c"]) {
        nodes.push(SharedConnection::new(connection(server).await, name));
    }
    let settings = settings().trust_fresh_nodes().watchdog_lease(LEASE);
    let locks = settings.clone().on_nodes(nodes.clone()).unwrap();
    let guard = hold(&locks, "a").await;
    // A majority is enough for the guard. The third server may be asked a moment later.
    until("every server has the claim", || {
        let mut all = servers.iter();
        all.all(|server| is_claimed_by(server, "a", &guard))
    })
    .await;
    let theirs = settings.on_nodes(nodes).unwrap();
    assert!(theirs.lock("a").try_acquire().await.unwrap().is_none());
    let [first, ..] = servers;
    drop(first);
    until_renewed(&guard).await;
    guard.release().await.unwrap();
    hold(&theirs, "a").await.release().await.unwrap();
}

async fn a_waiter_without_wake_ups_asks_again() {
    let server = Server::start();
    let policy = RetryPolicy::default().poll_cap(Duration::from_millis(50));
    let node = SharedConnection::new(connection(&server).await, "redis-a");
    let locks = settings().retry(policy).on_node(node).unwrap();
    let guard = hold(&locks, "a").await;
    let lock = locks.lock("a").wait(BOUND);
    let waiting = tokio::spawn(async move { lock.acquire().await });
    let theirs = settings().connect(&server.address()).await.unwrap();
    theirs.force_release("a").await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    drop(guard);
}

async fn the_words_of_the_server_reach_the_caller() {
    let server = Server::start();
    let locks = over(connection(&server).await);
    server.command::<()>(&["SET", "a", "no lock"]);
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = locks.lock("b").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    assert!(!error.to_string().contains(&server.address()), "{error}");
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}");
    };
    let error = nodes.first().and_then(|node| node.error.as_ref()).unwrap();
    assert_eq!(error.cause, Cause::OutOfMemory);
}

async fn scripts_that_were_flushed_are_sent_again() {
    let server = Server::start();
    let locks = over(connection(&server).await);
    for _ in 0..2 {
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        let guard = hold(&locks, "a").await;
        server.command::<()>(&["SCRIPT", "FLUSH"]);
        guard.release().await.unwrap();
    }
    let counters: i64 = server.command(&["EXISTS", "a"]);
    assert_eq!(counters, 0);
}

async fn a_server_that_is_silent_is_an_error_within_the_call_time_out() {
    let server = Server::start();
    let node = SharedConnection::new(connection(&server).await, "redis-a");
    let node = node.call_timeout(Duration::from_millis(50));
    let locks = Locks::on_node(node).unwrap();
    server.pause();
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("redis-a"), "{error}");
    assert!(
        error
            .to_string()
            .contains("no reply within the call time-out"),
        "{error}"
    );
    server.resume();
    // What the server executes after all is cleaned up.
    until("the claim is released", || {
        let claims: i64 = server.command(&["EXISTS", "a"]);
        claims == 0
    })
    .await;
    hold(&locks, "a").await.release().await.unwrap();
}
