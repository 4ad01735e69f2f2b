//! Tests holds that pass from one process to another.

use std::process::{Command, Stdio};
use std::time::Duration;

use quorlock::{Lock, Locks, Ticket};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{claim_of, client, locks_on, quorum_of};

use super::errors::limit_user;

server_tests![
    a_process_that_is_killed_has_handed_its_lock_over,
    every_kind_of_lock_passes_on,
    what_others_try_in_vain_does_not_matter,
    a_majority_passes_on_and_its_silent_server_too,
    CHANNELS: a_user_that_may_not_pass_on_changes_nothing,
];

/// If this variable is set, this program locks a name on the server with this address, hands it over, prints the ticket and
/// is killed.
const HAND_OVER: &str = "QUORLOCK_TEST_HANDS_OVER";

const LEASE: Duration = Duration::from_secs(60);

/// Hands a lock over, if the variable requests that: the other process of the first test.
pub(crate) fn hand_over_if_asked() {
    let Ok(address) = std::env::var(HAND_OVER) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ticket = runtime.block_on(async {
        let locks = Locks::connect(&address).await.unwrap();
        let guard = locks.lock("orders/42").lease(LEASE).acquire().await;
        guard.unwrap().hand_over().unwrap()
    });
    println!("{ticket}");
    std::process::abort();
}

async fn a_process_that_is_killed_has_handed_its_lock_over() {
    let server = Server::start();
    let program = std::env::current_exe().unwrap();
    let child = Command::new(program)
        .env(HAND_OVER, server.address())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(!child.status.success());
    let text = String::from_utf8(child.stdout).unwrap();
    let ticket: Ticket = text.trim_end().parse().unwrap();
    let locks = locks_on(&server).await;
    assert!(
        locks
            .lock("orders/42")
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    let guard = locks.adopt(&ticket).await.unwrap().unwrap();
    let owner = guard.owner_id().to_string();
    let fields: Vec<String> = server.command(&["HGETALL", "orders/42"]);
    assert_eq!(fields, [owner, "1".to_owned()]);
    guard.release().await.unwrap();
    assert!(claim_of(&server, "orders/42").is_none());
}

async fn every_kind_of_lock_passes_on() {
    let server = Server::start();
    let (web, worker) = (locks_on(&server).await, locks_on(&server).await);
    let waiting = worker.fair("fair");
    let locks: [Lock; 4] = [
        web.lock("plain"),
        web.write("write"),
        web.all(["b", "a"]),
        web.fair("fair"),
    ];
    for lock in locks {
        let guard = lock.acquire().await.unwrap();
        let token = guard.fencing_token();
        let ticket = guard.hand_over().unwrap();
        let adopted = worker.adopt(&ticket).await.unwrap().unwrap();
        assert!(token < adopted.fencing_token());
        adopted.extend(LEASE).await.unwrap();
        assert!(web.adopt(&ticket).await.unwrap().is_none());
        adopted.release().await.unwrap();
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    // A waiter of the fair lock waits on, and gets it after the second holder.
    let ticket = web
        .fair("fair")
        .acquire()
        .await
        .unwrap()
        .hand_over()
        .unwrap();
    let waiter = tokio::spawn(async move { waiting.acquire().await });
    until("the waiter has a place", || {
        server.command::<u32>(&["LLEN", "redisson_lock_queue:{fair}"]) == 1
    })
    .await;
    let adopted = web.adopt(&ticket).await.unwrap().unwrap();
    adopted.release().await.unwrap();
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

/// A try without a script draws a token although it is refused.
async fn what_others_try_in_vain_does_not_matter() {
    let server = Server::start();
    let (web, worker) = (locks_on(&server).await, locks_on(&server).await);
    let other = worker.lock("a");
    for _ in 0..3 {
        other.acquire().await.unwrap().release().await.unwrap();
        let guard = web.lock("a").acquire().await.unwrap();
        assert!(other.try_acquire().await.unwrap().is_none());
        let ticket = guard.hand_over().unwrap();
        assert!(other.try_acquire().await.unwrap().is_none());
        let adopted = worker.adopt(&ticket).await.unwrap().unwrap();
        adopted.release().await.unwrap();
    }
}

async fn a_majority_passes_on_and_its_silent_server_too() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let (web, worker) = (quorum_of(&servers).await, quorum_of(&servers).await);
    let guard = web
        .lock("a")
        .watchdog_lease(Duration::from_secs(15))
        .acquire()
        .await
        .unwrap();
    until("all servers have the claim", || {
        servers.iter().all(|server| claim_of(server, "a").is_some())
    })
    .await;
    let ticket = guard.hand_over().unwrap();
    servers[2].pause();
    let adopted = worker.adopt(&ticket).await.unwrap().unwrap();
    servers[2].resume();
    let owner = adopted.owner_id().to_string();
    until("the claim of the silent server has passed on, too", || {
        servers
            .iter()
            .all(|server| server.command::<bool>(&["HEXISTS", "a", &owner]))
    })
    .await;
    adopted.release().await.unwrap();
    until("the name is free everywhere", || {
        servers.iter().all(|server| claim_of(server, "a").is_none())
    })
    .await;
}

async fn a_user_that_may_not_pass_on_changes_nothing() {
    let server = Server::start();
    let web = locks_on(&server).await;
    limit_user(&server, &["~*", "&*", "+@all", "-hdel"]);
    let address = server
        .address()
        .replace("redis://", "redis://limited:correct@");
    let limited = client(&address).await;
    let guard = web.lock("a").lease(LEASE).acquire().await.unwrap();
    let ticket = guard.hand_over().unwrap();
    let before: Vec<String> = server.command(&["HGETALL", "a"]);
    let error = limited.adopt(&ticket).await.unwrap_err().to_string();
    assert!(error.contains("hdel"), "{error}");
    assert_eq!(server.command::<Vec<String>>(&["HGETALL", "a"]), before);
    assert!(0 < server.command::<i64>(&["PTTL", "a"]));
    let adopted = web.adopt(&ticket).await.unwrap().unwrap();
    adopted.release().await.unwrap();
}
