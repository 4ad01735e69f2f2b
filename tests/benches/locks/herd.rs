//! 50 processes that wait for one name: how long a hand-over takes, and the cost of the herd on the server.

use std::time::{Duration, Instant};

use quorlock::Locks;
use quorlock_testbed::server::Server;

use crate::options::Options;
use crate::process::{self, Part};
use crate::progress::Progress;
use crate::report::Figure;

const PROCESSES: usize = 50;
const HOLD: Duration = Duration::from_millis(1);

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    [1, 5]
        .into_iter()
        .flat_map(|nodes| measure(options, nodes))
        .collect()
}

fn measure(options: &Options, nodes: usize) -> Vec<Figure> {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let holds_each = options.pick(10, 2);
    let mut arguments = vec![holds_each.to_string()];
    arguments.extend(servers.iter().map(Server::address));
    let mut progress = Progress::new(
        format!("n = {nodes}, {PROCESSES} processes"),
        PROCESSES as u64,
    );
    let mut parts: Vec<_> = (0..PROCESSES)
        .map(|_| Part::start("waiter", &arguments))
        .collect();
    for part in &mut parts {
        assert_eq!(part.hear(), "ready");
    }
    let before = calls(&servers);
    let began = Instant::now();
    for part in &mut parts {
        part.go();
    }
    let mut held = 0.0;
    for (done, part) in parts.iter_mut().enumerate() {
        held += part.hear_numbers()[0];
        progress.at(done as u64 + 1);
    }
    let elapsed = began.elapsed().as_secs_f64();
    let calls = calls(&servers) - before;
    let handovers = (PROCESSES * holds_each) as f64;
    let figure = |what: &str, value| Figure {
        case: "herd",
        what: format!("50 processes, {what}"),
        nodes,
        value,
        ..Figure::default()
    };
    vec![
        figure("ms between holds", (elapsed - held) * 1e3 / handovers),
        figure("commands a hand-over", calls / handovers),
    ]
}

/// Returns how many commands of clients the servers have executed, except those that maintain connections.
pub(crate) fn calls(servers: &[Server]) -> f64 {
    let calls_of = |line: &str| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let counts = ["evalsha", "eval", "subscribe", "unsubscribe"].contains(&command);
        let calls = rest.split(',').next()?.parse::<f64>().ok()?;
        counts.then_some(calls)
    };
    servers
        .iter()
        .map(|server| {
            let info: String = server.command(&["INFO", "commandstats"]);
            info.lines().filter_map(calls_of).sum::<f64>()
        })
        .sum()
}

/// Runs one of the processes, which prints for how many seconds it has held the lock.
pub(crate) fn child(arguments: &[String]) {
    let [holds, addresses @ ..] = arguments else {
        panic!("how many holds, and where");
    };
    let holds: usize = holds.parse().expect("a number");
    let runtime = Options::default().runtime();
    let held = runtime.block_on(async {
        let locks = Locks::builder()
            .trust_fresh_nodes()
            .quorum(addresses)
            .await
            .expect("servers are there");
        let lock = locks.lock("orders");
        process::say("ready");
        process::wait_for_go();
        let mut held = Duration::ZERO;
        for _ in 0..holds {
            let guard = lock.acquire().await.expect("it becomes free");
            let from = Instant::now();
            tokio::time::sleep(HOLD).await;
            held += from.elapsed();
            guard.release().await.expect("it was held");
        }
        locks.close().await;
        held
    });
    process::say(&held.as_secs_f64().to_string());
}
