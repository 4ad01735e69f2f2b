//! Tests locks while a server refuses requests.

use std::time::Duration;

use quorlock::errors::NodeReport;
use quorlock::transport::{Cause, TransportError};
use quorlock::{AcquireError, ConfirmError, Locks};
use quorlock_redis::advice;
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{until, wait_until};
use quorlock_tests::clients::{is_claimed_by, locks_on, settings};

server_tests![
    story_28_a_flushed_script_cache_is_nobody_s_business,
    story_28_a_replica_refuses_and_the_lock_stays,
    story_28_a_server_that_cannot_save_refuses_and_the_lock_stays,
    story_28_a_busy_server_refuses_and_the_lock_stays,
    BUS_PORTS: story_28_a_cluster_that_is_down_is_named,
    ERRORS_OF_SCRIPTS: story_28_a_renewal_is_refused_and_the_next_one_is_not,
];

/// Without its script, every lock operation failed after a restart or a `SCRIPT FLUSH`. Here, the script is loaded
/// again.
async fn story_28_a_flushed_script_cache_is_nobody_s_business() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    let flush = || server.command::<()>(&["SCRIPT", "FLUSH"]);
    flush();
    let guard = locks.lock("a").acquire().await.unwrap();
    flush();
    let inner = guard.reenter().await.unwrap();
    flush();
    guard.extend(Duration::from_secs(40)).await.unwrap();
    flush();
    inner.release().await.unwrap();
    flush();
    guard.release().await.unwrap();
    assert_eq!(server.command::<u32>(&["EXISTS", "a"]), 0);
}

#[track_caller]
fn assert_named(reports: &[NodeReport], server: &Server, expected: Cause) {
    let [NodeReport { address, error, .. }] = reports else {
        panic!("{reports:?}")
    };
    assert!(address.contains(&server.port().to_string()));
    let Some(TransportError { cause, .. }) = error else {
        panic!("{reports:?}")
    };
    assert_eq!(*cause, expected);
}

/// Checks that a held lock stays held and nothing new is granted while the server refuses, and that everything
/// continues afterwards.
async fn assert_survives(
    server: &Server,
    expected: Cause,
    make_it_refuse: impl FnOnce(),
    heal: impl FnOnce(),
) {
    let locks = locks_on(server).await;
    let guard = locks.lock("a").acquire().await.unwrap();
    make_it_refuse();
    let error = guard.extend(Duration::from_secs(60)).await.unwrap_err();
    let ConfirmError::Unconfirmed { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_named(nodes, server, expected);
    assert!(guard.is_held());
    let error = locks.lock("b").try_acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_named(nodes, server, expected);
    assert!(error.to_string().contains(advice(expected)));
    heal();
    assert_eq!(server.command::<u32>(&["EXISTS", "b"]), 0);
    assert!(guard.is_held() && is_claimed_by(server, "a", &guard));
    guard.extend(Duration::from_secs(60)).await.unwrap();
    guard.release().await.unwrap();
}

/// After a failover, clients kept asking the old primary, and their locks were lost. Here, the error states that the
/// server is a replica.
async fn story_28_a_replica_refuses_and_the_lock_stays() {
    let server = Server::start();
    let replicate = |words: [&str; 2]| server.command::<()>(&["REPLICAOF", words[0], words[1]]);
    // The server is a replica of a primary that does not exist.
    let make_it_refuse = || replicate(["127.0.0.1", "1"]);
    let heal = || replicate(["NO", "ONE"]);
    assert_survives(&server, Cause::ReadOnly, make_it_refuse, heal).await;
}

/// A server that could not write its snapshot refused the extension, and the client deleted the lock because of that.
async fn story_28_a_server_that_cannot_save_refuses_and_the_lock_stays() {
    let server = Server::start_with(&["--save", "3600", "1"]);
    // There is a folder in the place of the snapshot file.
    let snapshot = server.dir().join("dump.rdb");
    let save = |status: &str| {
        server.command::<()>(&["BGSAVE"]);
        wait_until("the snapshot has ended", || {
            let info: String = server.command(&["INFO", "persistence"]);
            info.contains("rdb_bgsave_in_progress:0")
                && info.contains(&format!("rdb_last_bgsave_status:{status}"))
        });
    };
    let make_it_refuse = || {
        std::fs::create_dir(&snapshot).unwrap();
        save("err");
    };
    let heal = || {
        std::fs::remove_dir(&snapshot).unwrap();
        save("ok");
    };
    assert_survives(&server, Cause::Misconfigured, make_it_refuse, heal).await;
}

/// Another client's endless script made every renewal an error, and one error ended the watchdog.
async fn story_28_a_busy_server_refuses_and_the_lock_stays() {
    let server = Server::start_with(&["--lua-time-limit", "1"]);
    let mut looping = server.connect().unwrap();
    let make_it_refuse = || {
        let script = redis::cmd("EVAL")
            .arg("while true do end")
            .arg(0)
            .get_packed_command();
        looping.send_packed_command(&script).unwrap();
        wait_until("the server is busy", || {
            let answer = server.try_command::<String>(&["PING"]);
            answer.is_err_and(|error| error.code() == Some("BUSY"))
        });
    };
    let heal = || {
        server.command::<()>(&["SCRIPT", "KILL"]);
        server.wait_until_ready();
    };
    assert_survives(&server, Cause::Busy, make_it_refuse, heal).await;
}

/// A cluster without its slots counted the same lock up to 41. A refused request was not executed.
async fn story_28_a_cluster_that_is_down_is_named() {
    let server = Server::start_in_cluster(&[]);
    let client = redis::Client::open(server.address()).unwrap();
    let locks: Locks = settings().from_redis_client(&client).unwrap();
    let error = locks.lock("a").try_acquire().await.unwrap_err();
    let AcquireError::NoQuorum { nodes, .. } = &error else {
        panic!("{error}")
    };
    assert_named(nodes, &server, Cause::Cluster);
}

/// The watchdog itself gets the refusal: it tries again within the lease.
async fn story_28_a_renewal_is_refused_and_the_next_one_is_not() {
    let server = Server::start();
    let locks = settings().watchdog_lease(Duration::from_secs(6));
    let locks = locks.connect(server.address()).await.unwrap();
    let guard = locks.lock("a").acquire().await.unwrap();
    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    server.command::<()>(&["CONFIG", "RESETSTAT"]);
    let refused = || {
        let stats: String = server.command(&["INFO", "errorstats"]);
        stats.contains("errorstat_NOREPLICAS")
    };
    until("a renewal is refused", refused).await;
    assert!(guard.is_held());
    server.command::<()>(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let before = guard.validity();
    until("a renewal is granted", || before < guard.validity()).await;
    assert!(is_claimed_by(&server, "a", &guard));
    guard.release().await.unwrap();
}
