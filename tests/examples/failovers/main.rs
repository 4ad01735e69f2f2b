//! Locks on majorities of groups while those fail over: see `tests/failovers.sh`.

mod faults;
mod workers;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Parser;
use quorlock::{Locks, LocksBuilder};
use quorlock_testbed::cluster::Cluster;
use quorlock_testbed::sentinels::SentinelGroup;
use quorlock_testbed::server::Server;
use quorlock_tests::clients::{hasty, settings};
use rand::SeedableRng;
use rand::rngs::StdRng;

use self::faults::World;
use self::workers::{Book, worker};

/// The longest lease of all clients. A promoted replica has no vote for this time.
const LONGEST: Duration = Duration::from_secs(4);

/// Bound on the wait for a member that is silent.
const MEMBER_TIMEOUT: Duration = Duration::from_millis(500);

/// The lease on the cluster itself. It is longer than an election, so that claims are lost before they expire.
const LEASE_OF_THE_CONTROL: Duration = Duration::from_secs(15);

/// The number of clients of each kind. Each client has its own workers.
const CLIENTS: usize = 3;
const WORKERS: usize = 2;

const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Make groups fail over while clients lock names on majorities of them.
#[derive(Parser)]
struct Options {
    /// How long to run, in minutes
    #[arg(long, default_value_t = 3)]
    minutes: u64,
    /// The seed of the faults and their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lock names on the cluster itself, where a failover may give one lock to two holders
    #[arg(long)]
    one_cluster: bool,
    /// Stop primaries for longer than the longest lease, which may give one lock of a majority to two holders
    #[arg(long, conflicts_with = "one_cluster")]
    long_stops: bool,
}

/// Returns settings without [`LocksBuilder::trust_fresh_nodes`]. Here, servers restart without data, and promoted replicas
/// may not even have received the marker. If a client took such a server for a new one, it would grant names that are
/// held.
fn watching() -> LocksBuilder {
    Locks::builder()
        .redis(hasty())
        .member_timeout(MEMBER_TIMEOUT)
        .longest_lease(LONGEST)
        .watchdog_lease(LONGEST * 3 / 4)
}

async fn connect(world: &World, kind: &str) -> Locks {
    let connected = match kind {
        "shards" => {
            watching()
                .majority_of_shards(world.cluster.address(), 3)
                .await
        }
        "mixed" => {
            let addresses = [
                world.cluster.address(),
                world.group.address(),
                world.server.address(),
            ];
            watching().quorum(addresses).await
        }
        _ => settings().connect(world.cluster.address()).await,
    };
    connected.expect("the servers can be used")
}

/// Starts the workers of a kind. Returns their book.
async fn employ(world: &World, kind: &str, seed: u64, lease: Duration) -> Arc<Book> {
    let book = Arc::new(Book::default());
    for number in 0..CLIENTS {
        let locks = connect(world, kind).await;
        for at in 0..WORKERS {
            let seed = seed * 1_000 + (number * WORKERS + at) as u64;
            tokio::spawn(worker(locks.clone(), Arc::clone(&book), seed, lease));
        }
    }
    book
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let mut world = World {
        cluster: Cluster::start_with(&["--cluster-require-full-coverage", "no"]),
        group: SentinelGroup::start_of(2, 3),
        server: Server::start(),
        random: StdRng::seed_from_u64(options.seed),
        faults: match (options.one_cluster, options.long_stops) {
            (true, _) => faults::LAGGING,
            (_, true) => faults::LONG_STOPS,
            _ => faults::SURVIVED,
        },
        began: Instant::now(),
        told: Vec::new(),
    };
    let (kinds, lease): (&[&str], Duration) = if options.one_cluster {
        (&["one cluster"], LEASE_OF_THE_CONTROL)
    } else {
        (&["shards", "mixed"], LONGEST)
    };
    let mut books = Vec::new();
    for kind in kinds {
        books.push((kind, employ(&world, kind, options.seed, lease).await));
    }

    let began = Instant::now();
    let ends = began + Duration::from_secs(60 * options.minutes);
    let figures = books.clone();
    let lines = tokio::spawn(async move {
        loop {
            tokio::time::sleep(BETWEEN_LINES).await;
            for (kind, book) in &figures {
                println!("{:>5} s  {kind}: {book}", began.elapsed().as_secs());
            }
        }
    });
    let world = tokio::task::spawn_blocking(move || {
        while Instant::now() < ends {
            world.fault();
        }
        world
    });
    let world = world.await.expect("the servers obey");
    lines.abort();
    println!("\nfaults: {}", world.summary());
    let mut doubles = 0;
    for (kind, book) in &books {
        println!("{kind}: {book}");
        doubles += book.doubles.load(Ordering::SeqCst);
    }
    let is_control = options.one_cluster || options.long_stops;
    if 0 < doubles && !is_control {
        println!("{doubles} times two guards said that they were held");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
