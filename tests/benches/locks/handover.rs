//! Two clients that take turns: how much of the time the lock is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock_tests::server::Server;
use rslock::LockManager;

use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Figure, Spread, Target};

const HOLD: Duration = Duration::from_millis(5);
const NAME: &str = "orders";

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .map(|nodes| measure(options, nodes))
        .collect()
}

/// A client of one kind or the other.
#[derive(Clone)]
enum Client {
    Ours(Locks),
    Rslock(LockManager),
}

fn measure(options: &Options, nodes: usize) -> Figure {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let (turns, slice) = options.pick((15, 1000), (4, 500));
    let slice = Duration::from_millis(slice);
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    let (ours, peer, holds) = options.block_on(async move {
        let mut pair = Vec::new();
        for _ in 0..2 {
            pair.push(Client::Ours(
                Locks::quorum(&addresses).await.expect("servers are there"),
            ));
        }
        let peers = [0, 1].map(|_| Client::Rslock(LockManager::new(addresses.clone())));
        let mut shares = (Vec::new(), Vec::new());
        let mut holds = Vec::new();
        let mut progress = Progress::new(format!("n = {nodes}"), turns);
        for turn in 0..turns {
            let use_of_peers = in_use(&peers, slice).await;
            let use_of_ours = in_use(&pair, slice).await;
            shares.0.push(use_of_ours.share);
            shares.1.push(use_of_peers.share);
            holds.push(use_of_ours.holds as f64);
            progress.at(turn + 1);
        }
        (shares.0, shares.1, holds)
    });
    drop(servers);
    let ours = Spread::of(&ours);
    Figure {
        case: "handover",
        what: "sum of the holds / time".into(),
        nodes,
        value: ours.median,
        target: Some(Target::AtLeast(0.9)),
        ours: Some(ours),
        rslock: Some(Spread::of(&peer)),
        note: format!(
            "{:.0} holds a second",
            Spread::of(&holds).median / slice.as_secs_f64()
        ),
        ..Figure::default()
    }
}

struct Use {
    share: f64,
    holds: usize,
}

/// Lets two clients take turns for a while.
async fn in_use(clients: &[Client], slice: Duration) -> Use {
    let is_over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let tasks: Vec<_> = clients
        .iter()
        .map(|client| {
            let (client, is_over) = (client.clone(), is_over.clone());
            tokio::spawn(async move {
                let mut holds = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    holds.push(client.hold().await);
                }
                holds
            })
        })
        .collect();
    tokio::time::sleep(slice).await;
    is_over.store(true, Ordering::Relaxed);
    let mut holds = Vec::new();
    for task in tasks {
        holds.extend(task.await.expect("the client ends without a panic"));
    }
    // Until the last hold ended: a client that sleeps through the end is not charged with it.
    let end = holds.iter().map(|(_, end)| *end).max().unwrap_or(began);
    let sum: Duration = holds.iter().map(|(from, to)| *to - *from).sum();
    Use {
        share: sum.as_secs_f64() / (end - began).as_secs_f64(),
        holds: holds.len(),
    }
}

impl Client {
    /// Acquires, holds and releases; from when until when it was held.
    async fn hold(&self) -> (Instant, Instant) {
        match self {
            Client::Ours(locks) => {
                let guard = locks.lock(NAME).acquire().await.expect("it becomes free");
                let from = Instant::now();
                tokio::time::sleep(HOLD).await;
                let to = Instant::now();
                guard.release().await.expect("it was held");
                (from, to)
            }
            Client::Rslock(manager) => {
                let lease = Duration::from_secs(30);
                let lock = manager
                    .acquire(NAME.as_bytes(), lease)
                    .await
                    .expect("it becomes free");
                let from = Instant::now();
                tokio::time::sleep(HOLD).await;
                let to = Instant::now();
                lock.release().await;
                (from, to)
            }
        }
    }
}
