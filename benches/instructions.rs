//! Counts the instructions of a pair of acquire and release, of the client and of its servers: ours beside `rslock`, with 64
//! callers of one thread on names of their own. They depend on the machine far less than times do, so they have bounds.
//!
//! `cargo bench -p quorlock-bench --bench instructions` (some minutes). It needs `redis-server`, and valgrind, which counts. It
//! exits with 1 if more than a bound was counted.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use quorlock::Locks;
use quorlock_testbed::server::{Server, folder};
use rslock::LockManager;

const CALLERS: usize = 64;

/// Each count is the difference of two runs, with this many pairs of each caller, so what a program does once does not count. Nor does
/// what it does in its first second: tokens of five servers differ at first, and are drawn by scripts until then.
const PAIRS: [usize; 2] = [40, 140];

const LEASE: Duration = Duration::from_secs(30);

/// A client needs scripts on a connection that is younger than all tokens that it may have seen.
const AGE: Duration = Duration::from_millis(2_500);

/// A count, and the most that it may be.
struct Case {
    library: &'static str,
    nodes: usize,
    client: u64,
    /// Of all servers together.
    servers: u64,
}

const CASES: &[Case] = &[
    case("quorlock", 1, 37_000, 25_500),
    case("rslock", 1, u64::MAX, u64::MAX),
    case("quorlock", 5, 122_000, 145_000),
    case("rslock", 5, u64::MAX, u64::MAX),
];

const fn case(library: &'static str, nodes: usize, client: u64, servers: u64) -> Case {
    Case {
        library,
        nodes,
        client,
        servers,
    }
}

fn main() -> ExitCode {
    // Cargo adds this one.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if let [client, library, pairs, addresses @ ..] = &arguments[..]
        && client == "client"
    {
        run(library, pairs.parse().expect("a number"), addresses);
        return ExitCode::SUCCESS;
    }
    println!("instructions of a pair: client, servers");
    let mut code = ExitCode::SUCCESS;
    for case in CASES {
        let client = difference(|pairs| count_client(case, pairs));
        let servers = difference(|pairs| count_servers(case, pairs));
        let is_met = client <= case.client && servers <= case.servers;
        let bounds = match case.client {
            u64::MAX => String::new(),
            _ => format!("at most {:6}, {:7}", case.client, case.servers),
        };
        let (library, nodes) = (case.library, case.nodes);
        let verdict = if is_met { "" } else { "  MORE" };
        println!("{library:8} on {nodes}: {client:6}, {servers:7}  {bounds}{verdict}");
        if !is_met {
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The instructions of one pair.
fn difference(count: impl Fn(usize) -> u64) -> u64 {
    let [few, many] = PAIRS.map(count);
    (many - few) / ((PAIRS[1] - PAIRS[0]) * CALLERS) as u64
}

fn count_client(case: &Case, pairs: usize) -> u64 {
    let servers: Vec<Server> = (0..case.nodes).map(|_| Server::start()).collect();
    let dir = folder().expect("a folder");
    let counts = dir.path().join("counts");
    let mut counted = Command::new("valgrind");
    counted.args(counting(&counts)).arg(own());
    client(counted, case, pairs, &servers);
    total(&counts)
}

/// Counts all servers: beside a slow one, a majority would be reached without it.
fn count_servers(case: &Case, pairs: usize) -> u64 {
    let dir = folder().expect("a folder");
    let counts = |node| dir.path().join(format!("counts-{node}"));
    let servers: Vec<Server> = (0..case.nodes)
        .map(|node| counted(dir.path(), &counts(node)))
        .collect();
    client(Command::new(own()), case, pairs, &servers);
    let ended = servers.iter().enumerate().map(|(node, server)| {
        // It closes the connection, which is an error of the command.
        let _closed = server.try_command::<String>(&["SHUTDOWN", "NOSAVE"]);
        total(&counts(node))
    });
    ended.sum()
}

/// Starts a server whose instructions are counted.
fn counted(dir: &Path, counts: &Path) -> Server {
    let program = dir.join("server");
    let words = counting(counts).join(" ");
    let script = format!("#!/bin/sh\nexec valgrind {words} redis-server \"$@\"\n");
    std::fs::write(&program, script).expect("a file");
    let executable = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(&program, executable).expect("permissions");
    Server::start_program(&program.to_string_lossy(), &[])
}

fn counting(file: &Path) -> [String; 3] {
    let out = format!("--callgrind-out-file={}", file.display());
    ["--quiet".to_owned(), "--tool=callgrind".to_owned(), out]
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().expect("the path of this program")
}

/// Runs this program as a client.
fn client(mut command: Command, case: &Case, pairs: usize, servers: &[Server]) {
    command.args(["client", case.library, &pairs.to_string()]);
    command.args(servers.iter().map(Server::address));
    let status = command.stdout(Stdio::null()).status();
    assert!(status.expect("valgrind is installed").success());
}

/// The number of instructions in a file of callgrind, which is written when the program ends.
fn total(counts: &Path) -> u64 {
    for _ in 0..500 {
        let text = std::fs::read_to_string(counts).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
        if let Some(total) = line {
            return total.trim().parse().expect("a number");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("callgrind has written no counts");
}

fn run(library: &str, pairs: usize, addresses: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        match library {
            "quorlock" => ours(pairs, addresses).await,
            _ => rslock(pairs, addresses).await,
        }
    });
}

async fn ours(pairs: usize, addresses: &[String]) {
    let locks = Locks::builder().trust_fresh_nodes().quorum(addresses);
    let locks = &locks.await.expect("a client");
    let first = locks.lock("first").acquire().await.expect("it is free");
    first.release().await.expect("it is held");
    tokio::time::sleep(AGE).await;
    join_all((0..CALLERS).map(|caller| {
        let name = format!("orders/{caller}");
        async move {
            for _ in 0..pairs {
                let guard = locks.lock(&name).acquire().await.expect("it is free");
                guard.release().await.expect("it is held");
            }
        }
    }))
    .await;
}

async fn rslock(pairs: usize, addresses: &[String]) {
    let manager = LockManager::new(addresses.to_vec());
    join_all((0..CALLERS).map(|caller| {
        let (manager, name) = (&manager, format!("orders/{caller}"));
        async move {
            for _ in 0..pairs {
                let lock = manager.acquire_no_guard(name.as_bytes(), LEASE).await;
                manager.unlock(&lock.expect("it is free")).await;
            }
        }
    }))
    .await;
}
