//! Measures an acquisition by blocking code beside one by async code, with one caller and one server on loopback. The clients
//! take turns.
//!
//! `cargo bench -p quorlock-bench --bench blocking`. The async client takes part twice, to show the noise of the machine.

use std::time::{Duration, Instant};

use quorlock::{Locks, blocking};
use quorlock_testbed::server::Server;
use tokio::runtime::{Builder, Runtime};

/// The number of acquisitions in a turn of one client.
const TURN: usize = 200;

/// The number of turns of each client. The first turn does not count.
const TURNS: usize = 40;

/// The bound on what a blocking acquisition takes beyond an async one, in microseconds.
const BAR: f64 = 15.0;

const NAME: &str = "orders/42";

enum Client {
    Async(Runtime, Locks),
    Blocking(blocking::Locks),
}

impl Client {
    /// A runtime of one thread, which the caller has for itself.
    fn new_async(address: &str) -> Client {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let locks = runtime.block_on(Locks::connect(address));
        Client::Async(runtime, locks.expect("a client"))
    }

    /// Runs one turn. Returns how long each acquisition took.
    fn turn(&self) -> Vec<Duration> {
        match self {
            Client::Async(runtime, locks) => runtime.block_on(async {
                let mut spans = Vec::new();
                for _ in 0..TURN {
                    let began = Instant::now();
                    let guard = locks.lock(NAME).acquire().await.expect("it is free");
                    spans.push(began.elapsed());
                    guard.release().await.expect("it is held");
                }
                spans
            }),
            Client::Blocking(locks) => {
                let spans = (0..TURN).map(|_| {
                    let began = Instant::now();
                    let guard = locks.lock(NAME).acquire().expect("it is free");
                    let took = began.elapsed();
                    guard.release().expect("it is held");
                    took
                });
                spans.collect()
            }
        }
    }
}

fn main() {
    let server = Server::start();
    let address = server.address();
    let blocking = blocking::Locks::connect(&address).expect("a client");
    let clients = [
        ("async", Client::new_async(&address)),
        ("async again", Client::new_async(&address)),
        ("blocking", Client::Blocking(blocking)),
    ];
    let mut spans: [Vec<Duration>; 3] = Default::default();
    for turn in 0..TURNS {
        for ((_, client), spans) in clients.iter().zip(&mut spans) {
            let took = client.turn();
            if 0 < turn {
                spans.extend(took);
            }
        }
    }
    let [usual, again, blocking] = spans.map(|mut spans| {
        spans.sort_unstable();
        spans[spans.len() / 2].as_secs_f64() * 1e6
    });
    for ((name, _), median) in clients.iter().zip([usual, again, blocking]) {
        println!("{name:12} a median of {median:6.1} us");
    }
    println!("async again / async {:6.3}", again / usual);
    println!("blocking / async    {:6.3}", blocking / usual);
    println!(
        "blocking - async    {:6.1} us (bar: {BAR})",
        blocking - usual
    );
}
