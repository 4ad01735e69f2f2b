//! Tests semaphores on a server, and on a majority of servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorlock::{AcquireError, Guard, Locks};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{claim_of, locks_on, quorum_of};

server_tests![
    permits_are_locks_on_a_server,
    permits_are_locks_on_a_majority,
    a_release_of_any_permit_wakes_a_waiter_of_another_process,
    a_caller_that_asks_again_at_once_lets_another_process_pass,
];

/// Without a wake-up, a waiter would sleep for this long.
const LEASE: Duration = Duration::from_secs(60);

/// Longer than a message takes on a busy machine, and less than a waiter sleeps between two requests.
const SOON: Duration = Duration::from_secs(1);

fn name_of(guard: &Guard) -> String {
    guard.names().map(ToString::to_string).collect()
}

/// Callers of three clients compete for two permits.
async fn compete(clients: [Locks; 3], servers: &[Server]) {
    let holders = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let callers = (0..12).map(|number| {
        let semaphore = clients[number % 3].semaphore("pool", 2).wait(6 * BOUND);
        let (holders, most) = (holders.clone(), most.clone());
        tokio::spawn(async move {
            for _ in 0..10 {
                let guard = semaphore.acquire().await.unwrap();
                most.fetch_max(holders.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                assert!(guard.is_held());
                holders.fetch_sub(1, Ordering::SeqCst);
                guard.release().await.unwrap();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 2);

    let [ours, theirs, _] = clients;
    let one = ours.semaphore("pool", 2).acquire().await.unwrap();
    let other = theirs.semaphore("pool", 2).acquire().await.unwrap();
    let mut names = [name_of(&one), name_of(&other)];
    names.sort();
    assert_eq!(names, ["{pool}:permit:0", "{pool}:permit:1"]);
    let semaphore = ours.semaphore("pool", 2);
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    let late = semaphore.wait(Duration::from_millis(50)).acquire().await;
    let late = late.unwrap_err();
    assert!(matches!(late, AcquireError::Contended { .. }), "{late}");
    assert!(
        late.to_string()
            .starts_with("all 2 permits of \"pool\": held by"),
        "{late}"
    );
    let inspection = theirs.inspect(&names[0]).await.unwrap().to_string();
    assert!(inspection.contains(": held by "), "{inspection}");
    one.release().await.unwrap();
    other.release().await.unwrap();
    until("every permit is given back", || {
        let is_free = |server: &Server| names.iter().all(|name| claim_of(server, name).is_none());
        servers.iter().all(is_free)
    })
    .await;
}

async fn permits_are_locks_on_a_server() {
    let server = Server::start();
    let clients = [
        locks_on(&server).await,
        locks_on(&server).await,
        locks_on(&server).await,
    ];
    compete(clients, &[server]).await;
}

async fn permits_are_locks_on_a_majority() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let clients = [
        quorum_of(&servers).await,
        quorum_of(&servers).await,
        quorum_of(&servers).await,
    ];
    compete(clients, &servers).await;
}

async fn a_release_of_any_permit_wakes_a_waiter_of_another_process() {
    let server = Server::start();
    let (ours, theirs) = (locks_on(&server).await, locks_on(&server).await);
    for permit in 0..3 {
        let name = format!("pool/{permit}");
        let semaphore = ours.semaphore(&name, 3).lease(LEASE);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(semaphore.acquire().await.unwrap());
        }
        held.sort_by_key(name_of);
        let waiting = theirs.semaphore(&name, 3).wait(BOUND);
        let waiter = tokio::spawn(async move { waiting.acquire().await });
        until("the waiter listens at every permit", || {
            (0..3).all(|permit| {
                let channel = format!("redisson_lock__channel:{{{name}}}:permit:{permit}");
                server
                    .command::<(String, u32)>(&["PUBSUB", "NUMSUB", &channel])
                    .1
                    == 1
            })
        })
        .await;
        let freed = held.remove(permit);
        let freed_name = name_of(&freed);
        freed.release().await.unwrap();
        let released = Instant::now();
        let guard = waiter.await.unwrap().unwrap();
        assert_eq!(name_of(&guard), freed_name);
        assert!(released.elapsed() < SOON, "{:?}", released.elapsed());
        for guard in held.into_iter().chain([guard]) {
            guard.release().await.unwrap();
        }
    }
}

/// A holder in a loop has the only permit for itself if its tries are faster than the message to a waiter.
async fn a_caller_that_asks_again_at_once_lets_another_process_pass() {
    let server = Server::start();
    let (busy, ours) = (locks_on(&server).await, locks_on(&server).await);
    let semaphore = busy.semaphore("pool", 1);
    let task = tokio::spawn(async move {
        loop {
            let guard = semaphore.acquire().await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            guard.release().await.unwrap();
        }
    });
    for _ in 0..20 {
        let waiting = ours.semaphore("pool", 1).wait(BOUND);
        waiting.acquire().await.unwrap().release().await.unwrap();
    }
    task.abort();
}
