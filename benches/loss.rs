//! Measures how soon a hold learns that its claim was removed by others, with one server on loopback, beside a round trip of
//! the program that removes it.
//!
//! `cargo bench -p quorlock-bench --bench loss`.

use std::time::{Duration, Instant};

use quorlock::{Locks, Lost};
use quorlock_testbed::server::Server;

/// The number of losses of each kind.
const LOSSES: usize = 200;

/// The bound on the 99th of 100 losses.
const BAR: Duration = Duration::from_millis(50);

/// Longer than a hold lasts before it is watched.
const A_WHILE: Duration = Duration::from_millis(40);

const LEASE: Duration = Duration::from_secs(60);

const NAME: &str = "orders/42";

/// How another program removes a claim.
#[derive(Clone, Copy)]
enum Removal {
    Delete,
    Flush,
    ForceRelease,
}

/// Removes the claim of a hold. Returns how long the removal took, and how long after its beginning the loss was told.
async fn lose(holder: &Locks, other: &Locks, server: &Server, how: Removal) -> [Duration; 2] {
    let guard = holder.lock(NAME).lease(LEASE).acquire().await;
    let guard = guard.expect("it is free");
    tokio::time::sleep(A_WHILE).await;
    let lost = guard.lost();
    let lost = tokio::spawn(async move {
        let lost = lost.await;
        (lost, Instant::now())
    });
    let began = Instant::now();
    match how {
        Removal::Delete => drop(server.command::<u32>(&["DEL", NAME])),
        Removal::Flush => server.command::<()>(&["FLUSHALL"]),
        Removal::ForceRelease => drop(other.force_release(NAME).await.expect("it is held")),
    }
    let removed = began.elapsed();
    let (lost, told) = lost.await.expect("the signal");
    assert_eq!(lost, Lost::Taken);
    [removed, told.duration_since(began)]
}

fn at(spans: &[Duration], percent: usize) -> f64 {
    let place = (spans.len() * percent / 100).min(spans.len() - 1);
    spans[place].as_secs_f64() * 1e3
}

#[tokio::main]
async fn main() {
    let server = Server::start();
    let connect = async || Locks::connect(server.address()).await.expect("a client");
    let (holder, other) = (connect().await, connect().await);
    for (name, how) in [
        ("DEL", Removal::Delete),
        ("FLUSHALL", Removal::Flush),
        ("force_release", Removal::ForceRelease),
    ] {
        let (mut removed, mut told) = (Vec::new(), Vec::new());
        for _ in 0..LOSSES {
            let [took, after] = lose(&holder, &other, &server, how).await;
            removed.push(took);
            told.push(after);
        }
        removed.sort_unstable();
        told.sort_unstable();
        println!(
            "{name:14} removed after a median of {:6.3} ms, told after {:6.3} ms; 99 of 100 within {:6.3} ms (bar: {} ms)",
            at(&removed, 50),
            at(&told, 50),
            at(&told, 99),
            BAR.as_millis()
        );
    }
}
