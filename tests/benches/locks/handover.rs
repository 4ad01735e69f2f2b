//! Two clients that take turns to hold a lock and to wait for it: the share of the time for which the lock is in use.
//!
//! A client that has released acquires again only when the other one has the lock, so every hold is a hand-over. The
//! bare scripts, called by a single client, show how much time a release and an acquire take without a wake-up. Each
//! client has a runtime on a separate thread, as it would have in a separate process.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use quorlock::{Guard, Locks, LocksBuilder, NodeTrust};
use quorlock_testbed::server::Server;
use rand::seq::SliceRandom;
use rslock::{LockGuard, LockManager};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use crate::contestant::Bare;
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

/// A client of either kind.
#[derive(Clone)]
enum Client {
    Ours(Locks),
    Rslock(LockManager),
    Bare(Bare),
}

fn measure(options: &Options, nodes: usize) -> Figure {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let (turns, slice) = options.pick((15, 1000), (4, 500));
    let slice = Duration::from_millis(slice);
    let addresses: Vec<_> = servers.iter().map(Server::address).collect();
    let (ours, peers, alone, plain) = options.block_on(async move {
        let locks = Locks::builder().trust_fresh_nodes();
        let plain = locks.clone().node_trust(NodeTrust::Unwatched);
        let plain = plain.clock_margin(Duration::ZERO);
        let (mut pair, mut without, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..2 {
            pair.push(Seat::of(ours(locks.clone(), addresses.clone())).await);
            without.push(Seat::of(ours(plain.clone(), addresses.clone())).await);
            let peer = Client::Rslock(LockManager::new(addresses.clone()));
            peers.push(Seat::of(async { peer }).await);
        }
        let bare = async move { Client::Bare(Bare::connect(&addresses, 1).await) };
        let bare = [Seat::of(bare).await];
        let mut uses = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut progress = Progress::new(format!("n = {nodes}"), turns);
        for turn in 0..turns {
            let mut order = [0, 1, 2, 3];
            order.shuffle(&mut rand::rng());
            for who in order {
                match who {
                    0 => uses.0.push(in_use(&pair, slice).await),
                    1 => uses.1.push(in_use(&peers, slice).await),
                    2 => uses.2.push(in_use(&bare, slice).await),
                    _ => uses.3.push(in_use(&without, slice).await),
                }
            }
            progress.at(turn + 1);
        }
        uses
    });
    let share = |uses: &[Use]| Spread::of(&uses.iter().map(|u| u.share).collect::<Vec<_>>());
    let rate = |uses: &[Use]| {
        let holds: usize = uses.iter().map(|u| u.holds).sum();
        holds as f64 / (slice.as_secs_f64() * uses.len() as f64)
    };
    Figure {
        case: "handover",
        what: "sum of the holds / time".into(),
        nodes,
        value: share(&ours).median,
        target: Some(Target::AtLeast(0.9)),
        ours: Some(share(&ours)),
        bare: Some(share(&alone)),
        rslock: Some(share(&peers)),
        note: format!(
            "without remedies {:.3}; hand-overs a second: ours {:.0}, rslock {:.1}",
            share(&plain).median,
            rate(&ours),
            rate(&peers)
        ),
        ..Figure::default()
    }
}

async fn ours(locks: LocksBuilder, addresses: Vec<String>) -> Client {
    Client::Ours(locks.quorum(&addresses).await.expect("servers are there"))
}

/// A client, and the thread that it runs on.
struct Seat {
    client: Client,
    runtime: Handle,
    /// Ends the thread when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Seat {
    /// Starts a thread, and connects a client there.
    async fn of(client: impl Future<Output = Client> + Send + 'static) -> Seat {
        let (end, ended) = oneshot::channel();
        let (sender, handle) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            sender.send(runtime.handle().clone()).expect("it waits");
            // Only the end of the channel is awaited: nothing is ever sent.
            let _ = runtime.block_on(ended);
        });
        let runtime = handle.recv().expect("the thread sends its handle");
        let client = runtime.spawn(client).await;
        Seat {
            client: client.expect("it is connected without a panic"),
            runtime,
            _end: end,
        }
    }
}

struct Use {
    share: f64,
    holds: usize,
}

/// Lets two clients hand the lock over to each other for a while.
async fn in_use(seats: &[Seat], slice: Duration) -> Use {
    let began = Instant::now();
    let (holds, _) = watch::channel(0u64);
    let tasks: Vec<_> = seats
        .iter()
        .map(|seat| {
            let (client, holds) = (seat.client.clone(), holds.clone());
            seat.runtime.spawn(async move {
                let mut held = Vec::new();
                while began.elapsed() < slice {
                    let (from, to, number) = client.hold(&holds).await;
                    held.push((from, to));
                    if matches!(client, Client::Bare(_)) {
                        continue;
                    }
                    let mut others = holds.subscribe();
                    let next = others.wait_for(|holds| number < *holds).await;
                    next.expect("the channel is ours, too");
                }
                // The other client does not wait for this one.
                holds.send_modify(|holds| *holds += 1);
                held
            })
        })
        .collect();
    let mut held = Vec::new();
    for task in tasks {
        held.extend(task.await.expect("the client ends without a panic"));
    }
    let end = held.iter().map(|(_, to)| *to).max().unwrap_or(began);
    let sum: Duration = held.iter().map(|(from, to)| *to - *from).sum();
    Use {
        share: sum.as_secs_f64() / (end - began).as_secs_f64(),
        holds: held.len(),
    }
}

impl Client {
    /// Acquires, holds and releases. Returns when the hold began and ended, and its number.
    async fn hold(&self, holds: &watch::Sender<u64>) -> (Instant, Instant, u64) {
        let held = match self {
            Client::Ours(locks) => {
                let guard = locks.lock(NAME).acquire().await;
                Held::Ours(guard.expect("it becomes free"))
            }
            Client::Rslock(manager) => {
                let lock = manager
                    .acquire(NAME.as_bytes(), Duration::from_secs(30))
                    .await;
                Held::Rslock(lock.expect("it becomes free"))
            }
            Client::Bare(bare) => Held::Bare(bare.clone(), bare.acquire(NAME).await),
        };
        let from = Instant::now();
        let mut number = 0;
        holds.send_modify(|holds| {
            *holds += 1;
            number = *holds;
        });
        tokio::time::sleep(HOLD).await;
        let to = Instant::now();
        match held {
            Held::Ours(guard) => guard.release().await.expect("it was held"),
            Held::Rslock(lock) => lock.release().await,
            Held::Bare(bare, owner) => bare.release(NAME, &owner).await,
        }
        (from, to, number)
    }
}

enum Held {
    Ours(Guard),
    Rslock(LockGuard),
    Bare(Bare, String),
}
