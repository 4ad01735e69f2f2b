//! Tests several locks acquired together, on servers and on majorities of servers.

use quorlock::{Lock, Locks};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{acquire_at_last, claim_of, locks_on, quorum_of};

server_tests![
    opposite_orders_on_two_servers_make_progress,
    opposite_orders_over_quorums_make_progress,
    two_locks_of_which_one_server_is_dead_leave_nothing,
];

const TURNS: u32 = 20;

async fn take_turns(lock: Lock, server: &Server) {
    for _ in 0..TURNS {
        let guard = lock.acquire().await.unwrap();
        // Read, then write: two clients at the same time would lose an increment.
        let turns: Option<u32> = server.command(&["GET", "turns"]);
        let turns = (turns.unwrap_or(0) + 1).to_string();
        tokio::task::yield_now().await;
        server.command::<()>(&["SET", "turns", &turns]);
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}

fn both(first: &Locks, second: &Locks, is_reversed: usize) -> Lock {
    let mut locks = [first.lock("a"), second.lock("b")];
    locks.rotate_left(is_reversed);
    let [one, other] = locks;
    one.and([other])
}

async fn assert_progress(left: &[Server], right: &[Server]) {
    let mut locks = Vec::new();
    for turn in 0..3 {
        let (first, second) = (quorum_of(left).await, quorum_of(right).await);
        locks.push(both(&first, &second, turn % 2));
    }
    let [one, two, three]: [Lock; 3] = locks.try_into().unwrap();
    let witness = &left[0];
    tokio::join!(
        take_turns(one, witness),
        take_turns(two, witness),
        take_turns(three, witness)
    );
    assert_eq!(witness.command::<u32>(&["GET", "turns"]), 3 * TURNS);
    until("everything is given back", || {
        let is_free = |s: &Server| claim_of(s, "a").is_none() && claim_of(s, "b").is_none();
        left.iter().chain(right).all(is_free)
    })
    .await;
}

async fn opposite_orders_on_two_servers_make_progress() {
    assert_progress(&[Server::start()], &[Server::start()]).await;
}

async fn opposite_orders_over_quorums_make_progress() {
    let three = || [Server::start(), Server::start(), Server::start()];
    assert_progress(&three(), &three()).await;
}

async fn two_locks_of_which_one_server_is_dead_leave_nothing() {
    let (alive, dead) = (Server::start(), Server::start());
    let (first, second) = (locks_on(&alive).await, locks_on(&dead).await);
    let lock = both(&first, &second, 1);
    dead.kill();
    assert!(lock.acquire().await.is_err());
    until("the other is given back", || {
        claim_of(&alive, "a").is_none()
    })
    .await;
    dead.restart();
    let guard = acquire_at_last(&lock).await;
    assert_eq!(guard.names().count(), 2);
    guard.release().await.unwrap();
}
