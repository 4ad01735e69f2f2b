//! Tests that a hold learns at once that its claim was removed from a server.

use std::time::Duration;

use quorlock::redis::{RedisConfig, RedisTransport};
use quorlock::{Guard, Lock, Locks, Lost};
use quorlock_testbed::server::{Server, programs};
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{locks_on, settings};

server_tests![
    REPORTS: each_way_of_removal_is_told_long_before_a_renewal,
    REPORTS: a_claim_that_another_owner_got_at_once_is_told,
    own_renewals_and_short_holds_are_not_taken_for_losses,
    after_a_lost_connection_a_removal_in_between_is_told,
    on_a_server_that_reports_nothing_a_loss_is_told_by_the_next_renewal,
    a_majority_is_told_when_a_majority_has_lost_the_claim,
    REPORTS: a_server_that_was_busy_when_it_was_asked_is_asked_again,
    REPORTS: a_key_that_changes_all_the_time_is_not_asked_for_each_time,
    a_transport_without_the_watch_has_no_connection_for_it,
];

/// A renewal would tell it after a third of this.
const LEASE: Duration = Duration::from_secs(60);

/// How many keys this server reports a change of.
fn tracked(server: &Server) -> u32 {
    let stats: String = server.command(&["INFO", "stats"]);
    let keys = stats
        .lines()
        .find_map(|line| line.strip_prefix("tracking_total_keys:"));
    keys.map_or(0, |keys| keys.trim().parse().unwrap())
}

/// How often this server was asked whether a claim is there.
fn looks(server: &Server) -> u32 {
    let stats: String = server.command(&["INFO", "commandstats"]);
    let lines = stats.lines();
    let mut looks = lines.filter_map(|line| line.strip_prefix("cmdstat_hexists:calls="));
    let looks = looks.next().and_then(|rest| rest.split(',').next());
    looks.map_or(0, |looks| looks.parse().unwrap())
}

/// Returns a hold whose claims are watched on this server.
async fn watched(lock: &Lock, server: &Server) -> Guard {
    let guard = lock.acquire().await.unwrap();
    until("the claim is watched", || tracked(server) != 0).await;
    guard
}

async fn told(guard: &Guard) {
    let lost = tokio::time::timeout(BOUND, guard.lost()).await;
    assert_eq!(lost.expect("the loss is told"), Lost::Taken);
}

async fn each_way_of_removal_is_told_long_before_a_renewal() {
    for program in programs() {
        let server = Server::start_program(&program, &[]);
        let (ours, theirs) = (locks_on(&server).await, locks_on(&server).await);
        for lock in [
            ours.lock("a").watchdog_lease(LEASE),
            ours.lock("a").lease(LEASE),
            ours.fair("a").lease(LEASE),
            ours.write("a").lease(LEASE),
            ours.read("a").lease(LEASE),
        ] {
            for command in [
                &["DEL", "a"][..],
                &["FLUSHALL"],
                &["SET", "a", "x"],
                &["RENAME", "a", "b"],
            ] {
                let guard = watched(&lock, &server).await;
                server.command::<redis::Value>(command);
                told(&guard).await;
                server.command::<()>(&["FLUSHALL"]);
            }
            let guard = watched(&lock, &server).await;
            theirs.force_release("a").await.unwrap();
            told(&guard).await;
            server.command::<()>(&["FLUSHALL"]);
        }
    }
}

async fn a_claim_that_another_owner_got_at_once_is_told() {
    for program in programs() {
        let server = Server::start_program(&program, &[]);
        let (ours, theirs) = (locks_on(&server).await, locks_on(&server).await);
        let guard = watched(&ours.lock("a").watchdog_lease(LEASE), &server).await;
        let waiter = theirs.lock("a").wait(BOUND);
        let (next, _) = tokio::join!(waiter.acquire(), async {
            until("the other client waits", || {
                let told: (String, u32) =
                    server.command(&["PUBSUB", "NUMSUB", "redisson_lock__channel:{a}"]);
                told.1 == 1
            })
            .await;
            theirs.force_release("a").await.unwrap();
        });
        told(&guard).await;
        assert!(next.unwrap().is_held());
    }
}

async fn own_renewals_and_short_holds_are_not_taken_for_losses() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    for _ in 0..100 {
        let guard = locks.lock("short").acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    let guard = watched(&locks.lock("a").watchdog_lease(LEASE), &server).await;
    let before = looks(&server);
    for _ in 0..5 {
        guard.extend(LEASE).await.unwrap();
    }
    until("the server is asked again", || before < looks(&server)).await;
    assert!(guard.is_held());
    guard.release().await.unwrap();
    assert!(looks(&server) <= before + 6, "{} {before}", looks(&server));
}

async fn after_a_lost_connection_a_removal_in_between_is_told() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    let guard = watched(&locks.lock("a").lease(LEASE), &server).await;
    // In one step, so that the client cannot connect in between.
    let mut connection = server.connect().unwrap();
    redis::pipe()
        .atomic()
        .cmd("CLIENT")
        .arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"])
        .cmd("DEL")
        .arg("a")
        .exec(&mut connection)
        .unwrap();
    told(&guard).await;
}

async fn on_a_server_that_reports_nothing_a_loss_is_told_by_the_next_renewal() {
    let server = Server::start();
    server.command::<()>(&["ACL", "SETUSER", "default", "-client|tracking"]);
    let locks = locks_on(&server).await;
    let guard = locks
        .lock("a")
        .watchdog_lease(Duration::from_secs(1))
        .acquire()
        .await
        .unwrap();
    until("the server has refused it", || {
        let log: Vec<redis::Value> = server.command(&["ACL", "LOG"]);
        !log.is_empty()
    })
    .await;
    server.command::<u32>(&["DEL", "a"]);
    told(&guard).await;
    let linger = RedisConfig::default().linger(Duration::from_millis(10));
    let locks = settings().redis(linger.ping_interval(Duration::from_millis(10)));
    let locks: Locks = locks.connect(server.address()).await.unwrap();
    let _guard = locks.lock("b").acquire().await.unwrap();
    until("no connection for wake-ups is kept for nothing", || {
        let log: String = server.command(&["CLIENT", "LIST"]);
        let wakes = log.lines().filter(|line| line.contains("resp=3"));
        wakes.count() <= 1
    })
    .await;
}

async fn a_majority_is_told_when_a_majority_has_lost_the_claim() {
    let servers: Vec<Server> = (0..3).map(|_| Server::start()).collect();
    let addresses = servers.iter().map(Server::address);
    let locks = settings()
        .trust_fresh_nodes()
        .quorum(addresses)
        .await
        .unwrap();
    let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
    for server in &servers {
        until("the claim is watched", || tracked(server) != 0).await;
    }
    let before = looks(&servers[0]);
    servers[0].command::<u32>(&["DEL", "a"]);
    until("the client knows it", || before < looks(&servers[0])).await;
    assert!(guard.is_held());
    servers[1].command::<u32>(&["DEL", "a"]);
    told(&guard).await;
}

/// A script of another program keeps the server busy, which refuses every question meanwhile.
async fn a_server_that_was_busy_when_it_was_asked_is_asked_again() {
    for program in programs() {
        let server = Server::start_program(&program, &["--lua-time-limit", "1"]);
        let locks = locks_on(&server).await;
        let guard = locks.lock("a").lease(LEASE).acquire().await.unwrap();
        let mut other = server.connect().unwrap();
        let busy = tokio::task::spawn_blocking(move || {
            let script = redis::cmd("EVAL")
                .arg("while true do end")
                .arg(0)
                .exec(&mut other);
            assert!(script.is_err());
        });
        // The hold is watched from its twentieth millisecond on.
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.command::<()>(&["SCRIPT", "KILL"]);
        busy.await.unwrap();
        until("the claim is watched", || tracked(&server) != 0).await;
        server.command::<u32>(&["DEL", "a"]);
        told(&guard).await;
    }
}

async fn a_key_that_changes_all_the_time_is_not_asked_for_each_time() {
    let server = Server::start();
    let locks = locks_on(&server).await;
    let holds = (0..5).map(|_| async { locks.read("a").acquire().await.unwrap() });
    let holds = futures_util::future::join_all(holds).await;
    until("the claims are watched", || tracked(&server) != 0).await;
    let before = looks(&server);
    for _ in 0..1_000 {
        server.command::<i64>(&["HSET", "a", "other", "1"]);
    }
    // Eight at once, and two a second.
    let asked = looks(&server) - before;
    assert!(asked < 5 * 60, "{asked}");
    for guard in holds {
        guard.release().await.unwrap();
    }
}

async fn a_transport_without_the_watch_has_no_connection_for_it() {
    let server = Server::start();
    let transport = RedisTransport::open(&server.address(), RedisConfig::default()).unwrap();
    let locks = Locks::on_node(transport).unwrap();
    let _guard = locks.lock("a").acquire().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let clients: String = server.command(&["CLIENT", "LIST"]);
    // The locks, and this question.
    assert_eq!(clients.lines().count(), 2, "{clients}");
}
