//! Measures the kinds of stores beside one Redis server, in one run, each on servers of its own on loopback. The stores take turns in random order.
//!
//! `cargo bench -p quorlock-bench --bench stores` prints the table of the page on deployments, and `-- --json` what
//! `docs/results/stores.json` has. The first store takes part twice, to show the noise of the machine. Every server has on its disk what it
//! acknowledges, where the table does not say otherwise. A store whose server is not installed is an error: `tests/stores.sh` installs all.

use std::any::Any;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock::Locks;
use quorlock_testbed::etcd::Etcd;
use quorlock_testbed::mongodb::Mongodb;
use quorlock_testbed::mysql::Mysql;
use quorlock_testbed::postgres::Postgres;
use quorlock_testbed::s3::S3;
use quorlock_testbed::server::Server;
use quorlock_testbed::zookeeper::Zookeeper;
use rand::seq::SliceRandom;
use serde_json::json;

/// The number of turns of each store. The first turn does not count.
const TURNS: usize = 7;

/// How long each part of a turn takes.
const PART: Duration = Duration::from_millis(500);

/// How long two clients want one name, in a turn: several times as long as a waiter waits that reads again.
const SHARED: Duration = Duration::from_millis(1_500);

/// The number of callers, each with a name of its own, while the throughput is measured.
const CALLERS: usize = 16;

/// What a server of Redis needs to have on its disk what it acknowledges.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A store, and two clients of it.
struct Contestant {
    name: &'static str,
    is_majority: bool,
    clients: [Locks; 2],
    turns: Vec<Turn>,
    /// Its servers run as long as this value exists.
    _servers: Box<dyn Any>,
}

/// What was measured in one turn.
struct Turn {
    /// The median time of an acquisition of a free name, in microseconds.
    acquire: f64,
    /// Pairs of acquisition and release of many callers, a second.
    pairs: f64,
    /// Holds of one name that two clients want, a second.
    shared: f64,
}

impl Contestant {
    async fn new<S: Any>(name: &'static str, addresses: &[String], servers: S) -> Self {
        for address in addresses.iter().filter(|one| !one.starts_with("redis:")) {
            Locks::init(address).await.expect("its table");
        }
        let connect = async || {
            // A machine that is busy with something else must not end a measurement.
            let builder = Locks::builder().member_timeout(Duration::from_secs(5));
            builder.quorum(addresses).await.expect("a client")
        };
        Contestant {
            name,
            is_majority: 1 < addresses.len(),
            clients: [connect().await, connect().await],
            turns: Vec::new(),
            _servers: Box::new(servers),
        }
    }

    async fn take_turn(&mut self) {
        let [one, other] = &self.clients;
        let mut spans = Vec::new();
        let began = Instant::now();
        while began.elapsed() < PART {
            let asked = Instant::now();
            let guard = one.lock("free").acquire().await.expect("it is free");
            spans.push(asked.elapsed().as_secs_f64() * 1e6);
            guard.release().await.expect("it is held");
        }
        let names = (0..CALLERS).map(|caller| format!("free/{caller}"));
        let callers = names.map(|name| holds(one.lock(name), PART));
        let pairs = rate(&join_all(callers).await, PART);
        // A majority has no fair lock. There the client that has released lets the one go first that was woken.
        let of = |client: &Locks| match self.is_majority {
            true => client.lock("wanted"),
            false => client.fair("wanted"),
        };
        let both = [one, other].map(|client| holds(of(client), SHARED));
        let shared = rate(&join_all(both).await, SHARED);
        self.turns.push(Turn {
            acquire: median(spans),
            pairs,
            shared,
        });
    }

    /// The median of the turns that count.
    fn median(&self, of: fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().skip(1).map(of).collect())
    }
}

/// Acquires and releases a lock again and again, and returns how often.
async fn holds(lock: quorlock::Lock, span: Duration) -> u32 {
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < span {
        let guard = lock.acquire().await.expect("it becomes free");
        guard.release().await.expect("it is held");
        count += 1;
    }
    count
}

fn rate(counts: &[u32], span: Duration) -> f64 {
    f64::from(counts.iter().sum::<u32>()) / span.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Three significant digits.
fn shown(value: f64) -> String {
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

async fn contestants() -> Vec<Contestant> {
    let redis = async |name| {
        let server = Server::start();
        Contestant::new(name, &[server.address()], server).await
    };
    let mut all = vec![redis("one Redis server, in memory").await];
    all.push(redis("the same again").await);
    let server = Server::start_with(&DURABLE);
    let address = [server.address()];
    all.push(Contestant::new("one Redis server, `appendfsync always`", &address, server).await);
    let servers = [(); 3].map(|()| Server::start());
    let addresses = servers.each_ref().map(Server::address);
    all.push(
        Contestant::new(
            "a majority of three Redis servers, in memory",
            &addresses,
            servers,
        )
        .await,
    );
    // The test bed's own settings let PostgreSQL acknowledge before it writes.
    let server = Postgres::start_with(&[]);
    let address = [server.address()];
    all.push(Contestant::new("PostgreSQL", &address, server).await);
    let server = Mysql::start();
    let address = [server.address()];
    all.push(Contestant::new("MariaDB, with a binary log", &address, server).await);
    let folder = tempfile::tempdir().expect("a folder");
    let address = [format!("sqlite:{}", folder.path().join("locks").display())];
    all.push(Contestant::new("SQLite", &address, folder).await);
    let server = Etcd::start();
    let address = [server.address()];
    all.push(Contestant::new("etcd, one member", &address, server).await);
    let server = Etcd::three();
    let address = [server.address()];
    all.push(Contestant::new("etcd, three members on one disk", &address, server).await);
    let server = Zookeeper::three();
    let address = [server.address()];
    all.push(Contestant::new("ZooKeeper, three members on one disk", &address, server).await);
    let server = Mongodb::start();
    let address = [server.address()];
    all.push(
        Contestant::new(
            "MongoDB's protocol: mongo-java-server, in memory",
            &address,
            server,
        )
        .await,
    );
    let server = S3::start();
    let address = [server.address()];
    all.push(
        Contestant::new(
            "S3's protocol: versitygw, which does not wait for its disk",
            &address,
            server,
        )
        .await,
    );
    let (first, second, third) = (Server::start(), Postgres::start_with(&[]), Etcd::start());
    let addresses = [first.address(), second.address(), third.address()];
    all.push(
        Contestant::new(
            "a majority of Redis, PostgreSQL and etcd",
            &addresses,
            (first, second, third),
        )
        .await,
    );
    all
}

/// A table in Markdown: each figure, and how many times that of the first store it is.
fn table(all: &[Contestant]) -> String {
    let head = format!(
        "| on | acquire, µs | × | pairs a second, {CALLERS} callers | × | holds a second of one name that two clients want | × |\n\
         |---|---:|---:|---:|---:|---:|---:|\n"
    );
    let measures: [fn(&Turn) -> f64; 3] =
        [|turn| turn.acquire, |turn| turn.pairs, |turn| turn.shared];
    let row = |one: &Contestant| {
        let cells = measures.map(|of| {
            let (value, first) = (one.median(of), all[0].median(of));
            format!("{} | {}", shown(value), shown(value / first))
        });
        format!("| {} | {} |\n", one.name, cells.join(" | "))
    };
    head + &all.iter().map(row).collect::<String>()
}

/// Runs this program again with the keys of the server in its environment.
fn with_keys() -> ExitCode {
    let program = std::env::current_exe().expect("its path");
    let mut again = Command::new(program);
    let again = again.args(std::env::args().skip(1)).envs(S3::KEYS);
    match again.status().expect("it starts").success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn main() -> ExitCode {
    let has_keys = |(name, value)| std::env::var(name).is_ok_and(|it| it == value);
    if !S3::KEYS.into_iter().all(has_keys) {
        return with_keys();
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

async fn measure() {
    let is_json = std::env::args().any(|word| word == "--json");
    let mut all = contestants().await;
    let mut order: Vec<usize> = (0..all.len()).collect();
    for turn in 0..TURNS {
        order.shuffle(&mut rand::rng());
        for (place, index) in order.iter().enumerate() {
            eprint!(
                "\rturn {} of {TURNS}, store {} of {}   ",
                turn + 1,
                place + 1,
                order.len()
            );
            all[*index].take_turn().await;
        }
    }
    eprintln!();
    let table = table(&all);
    if !is_json {
        print!("{table}");
        return;
    }
    let commit = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output()
        .expect("git");
    let results = json!({
        "command": "cargo bench -p quorlock-bench --bench stores -- --json",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": String::from_utf8_lossy(&commit.stdout).trim(),
        "figures": { "table": table },
    });
    println!("{results:#}");
}
