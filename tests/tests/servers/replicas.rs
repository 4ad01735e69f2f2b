//! Tests grants that count only when a replica has them (`WAIT`), with a real replica.

use std::time::Duration;

use quorlock::redis::{RedisConfig, Wait};
use quorlock::transport::Cause;
use quorlock::{AcquireError, Locks};
use quorlock_testbed::server::{Server, programs};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until, wait_until};
use quorlock_tests::clients::{acquire_at_last, claim_of, is_claimed_by, locks_on, settings};

server_tests![
    a_grant_counts_when_the_replica_has_it,
    story_21_a_grant_that_no_replica_has_is_released,
    an_extension_that_does_not_get_there_extends_nothing,
    a_server_that_does_not_know_how_to_wait_is_refused,
    a_grant_that_waits_for_the_disk_is_there_after_a_crash,
];

const LEASE: Duration = Duration::from_secs(5);

/// Starts a primary, and a replica that follows it.
fn pair() -> (Server, Server) {
    let primary = Server::start();
    let port = primary.port().to_string();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &port]);
    wait_until("the replica follows", || {
        let info: String = replica.command(&["INFO", "replication"]);
        info.contains("master_link_status:up")
    });
    (primary, replica)
}

async fn waiting(server: &Server, wait: Wait) -> Locks {
    let redis = RedisConfig::default().wait(wait);
    let locks = settings().redis(redis).connect(server.address()).await;
    locks.expect("the server can be used")
}

/// Returns a wait that is long enough for a busy machine, and much shorter than the member time-out.
fn one_replica() -> Wait {
    Wait::replicas(1, Duration::from_millis(200))
}

async fn a_grant_counts_when_the_replica_has_it() {
    let (primary, replica) = pair();
    let locks = waiting(&primary, one_replica()).await;
    let lock = locks.lock("orders/42").lease(LEASE);
    let guard = acquire_at_last(&lock).await;
    assert!(is_claimed_by(&replica, "orders/42", &guard));
    guard.release().await.unwrap();
}

async fn story_21_a_grant_that_no_replica_has_is_released() {
    let (primary, replica) = pair();
    let locks = waiting(&primary, one_replica()).await;
    let lock = locks.lock("orders/42").lease(LEASE);
    replica.pause();
    let error = lock.try_acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}")
    };
    let cause = nodes[0].error.as_ref().map(|error| error.cause);
    assert_eq!(cause, Some(Cause::NotReplicated), "{error}");
    until("the claim is released", || {
        claim_of(&primary, "orders/42").is_none()
    })
    .await;
    // Without the setting, no client waits.
    let hasty = locks_on(&primary).await.lock("orders/42");
    let guard = hasty.acquire().await.unwrap();
    guard.release().await.unwrap();

    replica.resume();
    let guard = acquire_at_last(&lock).await;
    assert!(is_claimed_by(&replica, "orders/42", &guard));
}

async fn an_extension_that_does_not_get_there_extends_nothing() {
    let (primary, replica) = pair();
    let locks = waiting(&primary, one_replica()).await;
    let guard = acquire_at_last(&locks.lock("orders/42").lease(LEASE)).await;
    let before = guard.validity();
    replica.pause();
    guard.extend(4 * LEASE).await.unwrap_err();
    assert!(guard.is_held() && guard.validity() <= before);
    replica.resume();
    wait_until("the replica is in touch", || {
        primary.command::<u32>(&["WAIT", "1", "100"]) == 1
    });
    guard.extend(4 * LEASE).await.unwrap();
    assert!(before < guard.validity());
}

/// `WAITAOF` came with Redis 7.2, and needs a server that writes to its disk. Other servers are refused when the client
/// connects. A client that is made without checking the server gets the error at its first lock, and the claim is
/// released.
async fn a_server_that_does_not_know_how_to_wait_is_refused() {
    let server = Server::start();
    let wait = Wait::replicas(0, Duration::from_millis(50)).on_disk();
    let settings = settings().redis(RedisConfig::default().wait(wait));
    let error = settings
        .clone()
        .connect(server.address())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("Wait::on_disk was set"),
        "{error}"
    );

    let client = redis::Client::open(server.address()).unwrap();
    let locks = settings.from_redis_client(&client).unwrap();
    let error = locks.lock("orders/42").acquire().await.unwrap_err();
    let AcquireError::Refused { nodes, .. } = &error else {
        panic!("{error}")
    };
    let cause = nodes[0].error.as_ref().map(|error| error.cause);
    assert_eq!(cause, Some(Cause::Unsupported), "{error}");
    assert!(error.to_string().contains("WAITAOF"), "{error}");
    until("the claim is released", || {
        claim_of(&server, "orders/42").is_none()
    })
    .await;
}

/// This runs on each server program that has `WAITAOF`. The one on the PATH may be too old.
async fn a_grant_that_waits_for_the_disk_is_there_after_a_crash() {
    for program in programs() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = Server::start_program(&program, &options);
        let known: Vec<redis::Value> = server.command(&["COMMAND", "INFO", "WAITAOF"]);
        let wait = Wait::replicas(0, BOUND).on_disk();
        let settings = settings().redis(RedisConfig::default().wait(wait));
        let connected = settings.connect(server.address()).await;
        if known == [redis::Value::Nil] {
            let error = connected.unwrap_err().to_string();
            assert!(error.contains("7.2 or newer"), "{error}");
            continue;
        }
        let lock = connected.unwrap().lock("orders/42").wait(LEASE);
        let guard = lock.acquire().await.unwrap();
        server.kill();
        server.restart();
        assert!(is_claimed_by(&server, "orders/42", &guard));
    }
}
