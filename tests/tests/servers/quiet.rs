//! Tests a majority that no client uses while its servers are restarted or lose their data.

use std::time::{Duration, Instant};

use quorlock::{Locks, LocksBuilder};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::until;
use quorlock_tests::clients::{hasty, marks_itself};

server_tests![
    new_servers_grant_the_first_lock_at_once_to_a_client_that_was_idle_for_one_longest_lease,
    servers_that_restart_one_after_another_grant_a_lock_at_once_to_a_client_that_was_idle,
    servers_that_forget_everything_without_a_restart_are_watched_by_an_idle_client,
    a_server_that_starts_after_its_client_is_watched_from_then_on,
    a_client_of_one_server_and_one_that_was_closed_send_nothing_by_themselves,
    idle_clients_send_a_server_four_commands_each_in_a_longest_lease_at_most,
];

/// The longest lease: long enough for a loaded machine, and short enough for a test to wait several times.
const LONGEST: Duration = Duration::from_secs(2);

const MARKER: &str = "quorlock_marker";

fn three() -> Vec<Server> {
    std::iter::repeat_with(Server::start).take(3).collect()
}

fn settings() -> LocksBuilder {
    let settings = Locks::builder().redis(hasty());
    settings.longest_lease(LONGEST).watchdog_lease(LONGEST)
}

async fn client(servers: &[Server]) -> Locks {
    let connected = settings().quorum(servers.iter().map(Server::address)).await;
    connected.expect("the servers can be used")
}

/// Waits until the markers show that the processes of these servers were watched for long enough.
async fn until_watched(servers: &[Server]) {
    for server in servers {
        until("the server is watched without any lock", || {
            marks_itself(server, MARKER)
        })
        .await;
    }
}

/// Acquires the first lock, for which nothing is left to wait.
async fn grants_at_once(locks: &Locks) {
    let guard = locks.lock("first").try_acquire().await;
    let guard = guard.expect("no server is quarantined");
    guard.expect("the lock is free").release().await.unwrap();
}

/// Returns how often a server has run a script, and the time that its processor has spent, in seconds.
fn work_of(server: &Server) -> (u64, f64) {
    let info: String = server.command(&["INFO", "everything"]);
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    let calls = field("cmdstat_evalsha:calls=");
    let calls = calls.split(',').next().unwrap_or_default();
    let spent = |name| field(name).parse().unwrap_or(0.0);
    let spent = spent("used_cpu_user:") + spent("used_cpu_sys:");
    (calls.parse().unwrap_or(0), spent)
}

async fn new_servers_grant_the_first_lock_at_once_to_a_client_that_was_idle_for_one_longest_lease()
{
    let servers = three();
    let locks = client(&servers).await;
    until_watched(&servers).await;
    grants_at_once(&locks).await;
}

async fn servers_that_restart_one_after_another_grant_a_lock_at_once_to_a_client_that_was_idle() {
    let servers = three();
    let locks = client(&servers).await;
    until_watched(&servers).await;
    for _ in 0..2 {
        for server in &servers {
            tokio::task::block_in_place(|| server.restart());
            assert!(!marks_itself(server, MARKER));
            until_watched(std::slice::from_ref(server)).await;
        }
        grants_at_once(&locks).await;
    }
}

/// No connection breaks, so only a probe can notice it.
async fn servers_that_forget_everything_without_a_restart_are_watched_by_an_idle_client() {
    let servers = three();
    let locks = client(&servers).await;
    until_watched(&servers).await;
    servers[0].command::<()>(&["FLUSHALL"]);
    servers[1].command::<()>(&["SWAPDB", "0", "1"]);
    servers[2].command::<()>(&["DEL", MARKER]);
    assert!(!servers.iter().any(|server| marks_itself(server, MARKER)));
    until_watched(&servers).await;
    grants_at_once(&locks).await;
}

async fn a_server_that_starts_after_its_client_is_watched_from_then_on() {
    let servers = three();
    servers[2].kill();
    let locks = client(&servers).await;
    until_watched(&servers[..2]).await;
    tokio::task::block_in_place(|| servers[2].restart());
    until_watched(&servers).await;
    servers[0].kill();
    grants_at_once(&locks).await;
}

/// A client of one server that is watched writes a marker, which shows that the others do not.
async fn a_client_of_one_server_and_one_that_was_closed_send_nothing_by_themselves() {
    let server = Server::start();
    let one = settings().connect(server.address()).await.unwrap();
    let others = three();
    let closed = client(&others).await;
    until_watched(&others).await;
    closed.close().await;
    for other in &others {
        other.command::<()>(&["FLUSHALL"]);
    }
    let open = client(&others[..2]).await;
    until_watched(&others[..2]).await;
    assert!(!others[2].command::<bool>(&["EXISTS", MARKER]));
    assert!(!server.command::<bool>(&["EXISTS", MARKER]));
    drop((one, open));
}

/// With `QUORLOCK_MEASURE` this is the number of clients, whose longest lease is the default, and the figures of the page
/// are printed.
async fn idle_clients_send_a_server_four_commands_each_in_a_longest_lease_at_most() {
    let measured = std::env::var("QUORLOCK_MEASURE").ok();
    let (many, longest) = match measured {
        Some(many) => (many.parse().expect("a number"), Duration::from_secs(60)),
        None => (20, Duration::from_secs(4)),
    };
    let servers = three();
    let mut clients = Vec::new();
    for _ in 0..many {
        let builder = settings().trust_fresh_nodes();
        let builder = builder.longest_lease(longest).watchdog_lease(longest);
        let connected = builder.quorum(servers.iter().map(Server::address)).await;
        clients.push(connected.expect("the servers can be used"));
    }
    // The first probe of each client, after its connection.
    until("every client has probed every server", || {
        servers.iter().all(|server| many <= work_of(server).0)
    })
    .await;
    let began = Instant::now();
    let before: Vec<_> = servers.iter().map(work_of).collect();
    tokio::time::sleep(longest).await;
    for (server, (calls, spent)) in servers.iter().zip(before) {
        let (calls_after, spent_after) = work_of(server);
        let elapsed = began.elapsed();
        let (calls, spent) = (calls_after - calls, spent_after - spent);
        println!(
            "{many} idle clients: {calls} commands and {:.0} ms of the processor in {elapsed:?}",
            spent * 1e3
        );
        // Two connections of a client may be made after the other, and each is followed by a probe.
        let longest_leases = elapsed.as_secs_f64() / longest.as_secs_f64();
        let most = f64::from(u32::try_from(many).unwrap()) * (4.0 * longest_leases + 1.0);
        assert!(calls as f64 <= most, "{calls}");
        assert!(many <= calls, "each client probes each server: {calls}");
    }
}
