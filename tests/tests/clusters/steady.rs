//! What the address of a cluster costs while nothing happens.

use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock_tests::server::Server;
use quorlock_tests::server_tests;

use super::stage::{client, cluster, settings};

server_tests![in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address];

/// How many rounds are measured; `QUORLOCK_MEASURE` has another number, for a figure.
const ROUNDS: usize = 30;

/// How many locks a client acquires and releases in a round.
const LOCKS: u32 = 100;

async fn took(locks: &Locks) -> Duration {
    let lock = locks.lock("steady");
    let began = Instant::now();
    for _ in 0..LOCKS {
        let guard = lock.acquire().await.unwrap();
        guard.release().await.unwrap();
    }
    began.elapsed() / LOCKS
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

async fn in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address() {
    let cluster = cluster().await;
    let server = Server::start();
    let plain = settings().connect(server.address()).await.unwrap();
    let control = settings().connect(server.address()).await.unwrap();
    let clients = [plain, client(&cluster).await, control];
    for client in &clients {
        took(client).await;
    }
    let rounds = std::env::var("QUORLOCK_MEASURE").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let (mut of_cluster, mut of_control, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut times = [Duration::ZERO; 3];
        for place in 0..3 {
            // Each is first, second and third equally often.
            let which = (round + place) % 3;
            times[which] = took(&clients[which]).await;
        }
        let [plain, through, control] = times.map(|time| time.as_secs_f64());
        of_cluster.push(through / plain);
        of_control.push(control / plain);
        spans.push(plain * 1e6);
    }
    let (cluster, control) = (median(of_cluster), median(of_control));
    println!(
        "a lock at the address of a cluster takes {cluster:.3} times one at a plain address (control {control:.3}; {:.0} us)",
        median(spans)
    );
    // A redirect each time would be 2 at least. The nodes of a cluster do more than a server by itself: they have replicas, and
    // speak to each other.
    assert!(cluster < 1.6, "{cluster}");
}
