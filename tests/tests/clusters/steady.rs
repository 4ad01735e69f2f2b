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

/// How many calls of scripts a node has executed, or has refused and sent elsewhere.
fn scripts(node: &Server) -> u64 {
    let stats: String = node.command(&["INFO", "commandstats"]);
    let mut lines = stats.lines();
    let line = lines.find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let fields = line.unwrap_or_default().split(',');
    let counts = fields.filter_map(|field| {
        let (name, count) = field.split_once('=')?;
        matches!(name, "calls" | "rejected_calls").then(|| count.parse::<u64>().ok())?
    });
    counts.sum()
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

async fn in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address() {
    let cluster = cluster().await;
    let executed = || -> Vec<u64> { cluster.nodes().iter().map(scripts).collect() };
    let server = Server::start();
    let plain = settings().connect(server.address()).await.unwrap();
    let control = settings().connect(server.address()).await.unwrap();
    let clients = [plain, client(&cluster).await, control];
    for client in &clients {
        took(client).await;
    }
    // One call for an acquire and one for a release, at one node: none is sent on by another.
    let before = executed();
    took(&clients[1]).await;
    let calls = executed().into_iter().zip(before);
    let calls: Vec<u64> = calls.map(|(after, before)| after - before).collect();
    assert_eq!(calls.iter().sum::<u64>(), 2 * u64::from(LOCKS), "{calls:?}");
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
    // A figure, and no bar: the nodes of a cluster have replicas, which a machine with two processors has little room for.
    println!(
        "a lock at the address of a cluster takes {cluster:.3} times one at a plain address (control {control:.3}; {:.0} us)",
        median(spans)
    );
}
