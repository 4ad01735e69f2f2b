//! Many locks held by one client for minutes, in real time: whether one is lost, and their cost.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use quorlock::{Guard, Locks};
use quorlock_testbed::server::Server;

use crate::options::Options;
use crate::process::{self, Part};
use crate::progress::Progress;
use crate::report::{Figure, Target};

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let nodes = 1;
    let server = Server::start();
    let (locks, seconds, lease) = options.pick((10_000, 300, 30), (2_000, 12, 6));
    let arguments = [locks.to_string(), lease.to_string(), server.address()];
    let mut part = Part::start("keeper", &arguments);
    assert_eq!(part.hear(), "ready");
    let (memory_before, _) = (resident_bytes(part.id()), part.go());
    assert_eq!(part.hear(), "held");
    let memory = resident_bytes(part.id()) - memory_before;
    let cpu_before = cpu_seconds(part.id());
    let server_before = cpu_seconds(server.pid());
    let began = Instant::now();
    let what = format!("{locks} locks, {seconds} s in real time");
    let mut progress = Progress::new(what, seconds);
    for second in 0..seconds {
        std::thread::sleep(Duration::from_secs(second + 1).saturating_sub(began.elapsed()));
        progress.at(second + 1);
    }
    let elapsed = began.elapsed().as_secs_f64();
    let share = |pid, before: f64| 100.0 * (cpu_seconds(pid) - before) / elapsed;
    let (cpu, cpu_of_server) = (
        share(part.id(), cpu_before),
        share(server.pid(), server_before),
    );
    let peak = resident_bytes(part.id()) - memory_before;
    part.go();
    let [held] = part.hear_numbers()[..] else {
        panic!("no number of held locks");
    };
    let figure = |what: &str, value, target, note: String| Figure {
        case: "keeping",
        what: format!("{locks} locks for {seconds} s, {what}"),
        nodes,
        value,
        target: Some(Target::AtMost(target)),
        note,
        ..Figure::default()
    };
    vec![
        figure(
            "lost",
            locks as f64 - held,
            0.0,
            format!("lease {lease} s, in real time"),
        ),
        figure(
            "% of a core",
            cpu,
            2.0,
            format!("the server: {cpu_of_server:.2} %"),
        ),
        figure(
            "resident bytes a lock",
            peak.max(memory) / locks as f64,
            2048.0,
            format!("when acquired: {:.0}", memory / locks as f64),
        ),
    ]
}

/// Returns the resident memory of a process, in bytes.
fn resident_bytes(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    kib.expect("a size").parse::<f64>().expect("a size") * 1024.0
}

/// Returns the user and system time of a process so far, in seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("Linux");
    let (_, fields) = stat.rsplit_once(')').expect("the format of stat");
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<f64>().expect("ticks");
    (ticks(11) + ticks(12)) / rustix::param::clock_ticks_per_second() as f64
}

/// Runs the process that holds the locks, and prints how many of them it still holds at the end.
pub(crate) fn child(arguments: &[String]) {
    let [locks, lease, address] = arguments else {
        panic!("how many locks, their lease, and where");
    };
    let many: usize = locks.parse().expect("a number");
    let lease = Duration::from_secs(lease.parse().expect("a number"));
    let runtime = Options::default().runtime();
    runtime.block_on(async {
        let builder = Locks::builder().watchdog_lease(lease);
        let locks = builder.connect(address).await.expect("the server is there");
        // One lock is acquired first, so that everything that is allocated once is allocated.
        let first = locks
            .lock("warm-up")
            .acquire()
            .await
            .expect("the lock is free");
        first.release().await.expect("it was held");
        process::say("ready");
        process::wait_for_go();
        let mut guards: Vec<Guard> = Vec::with_capacity(many);
        while guards.len() < many {
            let batch = (0..100).map(|_| rand::random::<u64>());
            let batch = batch.map(|number| {
                let lock = locks.lock(format!("orders/{number:020}"));
                async move { lock.acquire().await.expect("the lock is free") }
            });
            guards.extend(join_all(batch).await);
        }
        process::say("held");
        let go = tokio::task::spawn_blocking(process::wait_for_go);
        go.await.expect("the parent is there");
        let held = guards.iter().filter(|guard| guard.is_held()).count();
        process::say(&held.to_string());
    });
}
