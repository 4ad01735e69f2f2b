//! Measures what the address of a cluster costs without faults.

use quorlock_testbed::server::Server;
use quorlock_testbed::server_tests;
use quorlock_tests::clients::settings;
use quorlock_tests::steady::{LOCKS, measure, took};

use super::stage::{client, cluster};

server_tests![in_the_steady_state_a_lock_costs_what_it_costs_at_a_plain_address];

/// Returns how many script calls a node has executed, or has refused and redirected.
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
    // One call for an acquire and one for a release, at one node. No other node redirects a call.
    let before = executed();
    took(&clients[1]).await;
    let calls = executed().into_iter().zip(before);
    let calls: Vec<u64> = calls.map(|(after, before)| after - before).collect();
    assert_eq!(calls.iter().sum::<u64>(), 2 * u64::from(LOCKS), "{calls:?}");
    // This figure has no bound: the nodes of a cluster have replicas, and a machine with two processors has little
    // capacity for them.
    measure(&clients).await.print("the address of a cluster");
}
