//! Tests a process that holds a lock and is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quorlock::{Guard, Locks};
use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_testbed::wait::{BOUND, until};
use quorlock_tests::clients::{claim_of, is_claimed_by, quorum_of, settings};

server_tests![
    a_killed_client_s_lock_is_free_when_its_lease_ends,
    a_killed_client_s_lock_on_three_servers_is_free_when_its_lease_ends,
    a_killed_waiter_leaves_the_lock_to_the_next,
];

/// If this variable is set to addresses, this program acquires a lock there, prints its token, and waits to be killed.
const HOLD: &str = "QUORLOCK_TEST_HOLDS_A_LOCK";

/// How long the lock outlives its holder.
const LEASE: Duration = Duration::from_secs(2);

/// Holds a lock until this process is killed, if the variable requests that: the other side of these tests.
pub(crate) fn hold_a_lock_if_asked() {
    let Ok(addresses) = std::env::var(HOLD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let holding = async {
        println!("connecting");
        let locks = connect(addresses.split(',')).await;
        let guard = locks.lock("a").acquire().await.unwrap();
        println!("{}", guard.fencing_token());
        guard
    };
    let _guard = runtime.block_on(holding);
    let _ = std::io::stdin().read(&mut [0]);
    unreachable!("this process is killed before its input ends");
}

async fn connect(addresses: impl Iterator<Item = &str>) -> Locks {
    let settings = settings().watchdog_lease(LEASE);
    settings.quorum(addresses).await.unwrap()
}

/// A separate process with a client in it. It ends with the test.
struct Client(Child, BufReader<std::process::ChildStdout>);

impl Client {
    fn start(servers: &[Server]) -> Client {
        let addresses: Vec<_> = servers.iter().map(Server::address).collect();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(HOLD, addresses.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Client(child, stdout);
        assert_eq!(client.hear(), "connecting");
        client
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How much longer than its lease a majority of servers keeps a claim, unless a client has seen its last claim
/// version.
const MARGIN: Duration = Duration::from_secs(60);

/// Returns the time for which so many leases still run that no other client can have a majority.
fn left(servers: &[Server]) -> Duration {
    let mut left: Vec<u64> = servers
        .iter()
        .map(|server| {
            let ttl: i64 = server.command(&["PTTL", "a"]);
            u64::try_from(ttl).unwrap_or(0)
        })
        .collect();
    left.sort_unstable();
    let left = Duration::from_millis(left[servers.len() / 2]);
    match servers.len() {
        1 => left,
        _ => left.saturating_sub(MARGIN),
    }
}

async fn a_killed_client_s_lock_is_free_when_its_lease_ends() {
    assert_is_free_when_its_lease_ends(&[Server::start()]).await;
}

async fn a_killed_client_s_lock_on_three_servers_is_free_when_its_lease_ends() {
    assert_is_free_when_its_lease_ends(&[Server::start(), Server::start(), Server::start()]).await;
}

async fn assert_is_free_when_its_lease_ends(servers: &[Server]) {
    let mut holder = Client::start(servers);
    let token: u64 = holder.hear().parse().unwrap();
    let lock = quorum_of(servers).await.lock("a");
    let waiting = tokio::spawn(async move {
        let guard: Guard = lock.acquire().await.unwrap();
        (guard, Instant::now())
    });
    // The process renews the lock while it lives, so the lock is not free after one lease, nor after two.
    for _ in 0..3 {
        until("less is left", || left(servers) < LEASE * 3 / 4).await;
        until("it is renewed", || LEASE * 3 / 4 < left(servers)).await;
    }
    assert!(!waiting.is_finished());
    holder.kill();
    let killed = Instant::now();
    let left = left(servers);
    let (guard, entered) = tokio::time::timeout(BOUND, waiting).await.unwrap().unwrap();
    // Redis counts in milliseconds, on its own clock.
    let waited = entered - killed + Duration::from_millis(5);
    assert!(left <= waited, "{waited:?}, but {left:?} were left");
    assert!(token < guard.fencing_token().0);
    let claims = servers.iter().filter(|s| is_claimed_by(s, "a", &guard));
    assert!(servers.len() / 2 < claims.count());
    guard.release().await.unwrap();
}

async fn a_killed_waiter_leaves_the_lock_to_the_next() {
    let servers = [Server::start()];
    let locks = quorum_of(&servers).await;
    let held = locks.lock("a").acquire().await.unwrap();
    let mut waiter = Client::start(&servers);
    let channel = "redisson_lock__channel:{a}";
    let listeners = || {
        let (_, count): (String, u32) = servers[0].command(&["PUBSUB", "NUMSUB", channel]);
        count
    };
    until("it waits", || listeners() == 1).await;
    waiter.kill();
    held.release().await.unwrap();
    let next = locks.lock("a").wait(BOUND).acquire().await.unwrap();
    assert!(is_claimed_by(&servers[0], "a", &next));
    next.release().await.unwrap();
    assert_eq!(claim_of(&servers[0], "a"), None);
}
