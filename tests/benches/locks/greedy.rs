//! Processes that acquire one lock again without a pause: how long the lock is idle while another process waits,
//! whether each process gets its share, and the cost of a hand-over on the servers.
//!
//! The first process stops before the others. The time for which it leaves the lock idle counts, too.

use std::time::{Duration, Instant, SystemTime};

use quorlock::Locks;
use quorlock_testbed::server::Server;

use crate::herd::calls;
use crate::options::Options;
use crate::process::{self, Part};
use crate::progress::Progress;
use crate::report::{Figure, Spread, Target};

const HOLD: Duration = Duration::from_millis(5);

pub(crate) fn run(options: &Options) -> Vec<Figure> {
    let cases = [(1, 2), (5, 2), (1, 10), (5, 10)];
    let measured = cases.map(|(nodes, processes)| measure(options, nodes, processes));
    measured.into_iter().flatten().collect()
}

/// A hold of a process, in microseconds since the start of the measurement.
#[derive(Clone, Copy)]
struct Hold {
    process: usize,
    asked: f64,
    acquired: f64,
    /// When the release of the hold began.
    released: f64,
}

fn measure(options: &Options, nodes: usize, processes: usize) -> Vec<Figure> {
    let servers: Vec<_> = (0..nodes).map(|_| Server::start()).collect();
    let turns: u64 = options.pick(6, 2);
    let slice = Duration::from_millis(options.pick(2_000, 1_000));
    let mut progress = Progress::new(format!("n = {nodes}, {processes} processes"), turns);
    let mut all = Vec::new();
    for turn in 0..turns {
        all.push(turn_of(&servers, processes, slice));
        progress.at(turn + 1);
    }
    figures(&all, nodes, processes)
}

/// The results of one turn.
struct Measured {
    holds: Vec<Hold>,
    commands: f64,
}

fn turn_of(servers: &[Server], processes: usize, slice: Duration) -> Measured {
    let mut parts: Vec<_> = (0..processes)
        .map(|process| {
            // The others continue after the first one has stopped.
            let span = slice + slice / 4 * u32::from(process != 0);
            let mut arguments = vec![span.as_micros().to_string()];
            arguments.extend(servers.iter().map(Server::address));
            Part::start("greedy", &arguments)
        })
        .collect();
    for part in &mut parts {
        assert_eq!(part.hear(), "ready");
    }
    let before = calls(servers);
    for part in &mut parts {
        part.go();
    }
    let mut holds = Vec::new();
    for (process, part) in parts.iter_mut().enumerate() {
        let numbers = part.hear_numbers();
        holds.extend(numbers.chunks_exact(3).map(|times| Hold {
            process,
            asked: times[0],
            acquired: times[1],
            released: times[2],
        }));
    }
    let commands = calls(servers) - before;
    holds.sort_by(|a, b| a.acquired.total_cmp(&b.acquired));
    Measured { holds, commands }
}

impl Measured {
    /// Returns the times, in ms, for which no process held the lock while a process other than the last holder waited for
    /// it.
    fn gaps(&self) -> impl Iterator<Item = f64> {
        let pairs = self.holds.windows(2);
        pairs.filter_map(|pair| {
            let was_waited_for = self.holds.iter().any(|hold| {
                let is_another = hold.process != pair[0].process;
                is_another && hold.asked <= pair[0].released && pair[1].acquired <= hold.acquired
            });
            was_waited_for.then_some((pair[1].acquired - pair[0].released) / 1e3)
        })
    }

    /// Returns the share of the time for which the lock was held, until the first process stopped.
    fn in_use(&self) -> f64 {
        let holds = self.while_all_ask();
        let held: f64 = holds.iter().map(|hold| hold.released - hold.acquired).sum();
        let span = holds.last().map(|last| last.released - holds[0].acquired);
        held / span.unwrap_or(f64::INFINITY)
    }

    fn while_all_ask(&self) -> &[Hold] {
        let last = self.holds.iter().rposition(|hold| hold.process == 0);
        &self.holds[..last.map_or(0, |last| last + 1)]
    }

    /// Returns the smallest share of the holds of a process while all compete, divided by an even share.
    fn least_share(&self, processes: usize) -> f64 {
        let holds = self.while_all_ask();
        let shares = (0..processes).map(|process| {
            let its = holds.iter().filter(|hold| hold.process == process).count();
            its as f64 * processes as f64 / holds.len() as f64
        });
        shares.fold(f64::INFINITY, f64::min)
    }
}

fn figures(all: &[Measured], nodes: usize, processes: usize) -> Vec<Figure> {
    let figure = |what: &str, value, target, note| Figure {
        case: "greedy",
        what: format!("{processes} greedy processes, {what}"),
        nodes,
        value,
        target,
        note,
        ..Figure::default()
    };
    let gaps: Vec<f64> = all.iter().flat_map(Measured::gaps).collect();
    let longest = gaps.iter().copied().fold(0.0, f64::max);
    let gap = Spread::of(&gaps);
    let holds: usize = all.iter().map(|turn| turn.holds.len()).sum();
    let commands: f64 = all.iter().map(|turn| turn.commands).sum();
    let changes: usize = all.iter().map(|turn| changes(&turn.holds)).sum();
    let in_use: Vec<f64> = all.iter().map(Measured::in_use).collect();
    let shares: Vec<f64> = all.iter().map(|turn| turn.least_share(processes)).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let two = processes == 2;
    let most_commands = if nodes == 1 { 4.0 } else { 20.0 };
    vec![
        figure(
            "idle while one waits, ms, p99",
            gap.p99,
            Some(Target::AtMost(20.0)),
            format!(
                "median {:.2}, longest {longest:.2}, {} gaps",
                gap.median,
                gaps.len()
            ),
        ),
        figure(
            "in use",
            Spread::of(&in_use).median,
            two.then_some(Target::AtLeast(0.9)),
            format!("{holds} holds, {changes} of them of another process than the one before"),
        ),
        figure(
            "least share / even share",
            least,
            Some(Target::AtLeast(1.0 / 3.0)),
            format!("median {:.2}", Spread::of(&shares).median),
        ),
        figure(
            "commands a hand-over",
            commands / holds as f64,
            two.then_some(Target::AtMost(most_commands)),
            String::new(),
        ),
    ]
}

/// Returns the number of holds by a process other than that of the previous hold.
fn changes(holds: &[Hold]) -> usize {
    let pairs = holds.windows(2);
    pairs
        .filter(|pair| pair[0].process != pair[1].process)
        .count()
}

/// Runs one of the processes, which prints when it requested and acquired each hold and when it began to release it.
pub(crate) fn child(arguments: &[String]) {
    let [span, addresses @ ..] = arguments else {
        panic!("for how long, and where");
    };
    let span = Duration::from_micros(span.parse().expect("a number"));
    let runtime = Options::default().runtime();
    let times = runtime.block_on(async {
        let locks = Locks::builder()
            .trust_fresh_nodes()
            .quorum(addresses)
            .await
            .expect("servers are there");
        let lock = locks.lock("orders");
        process::say("ready");
        process::wait_for_go();
        let began = Instant::now();
        let mut times = Vec::new();
        while began.elapsed() < span {
            times.push(micros());
            let guard = lock.acquire().await.expect("it becomes free");
            times.push(micros());
            tokio::time::sleep(HOLD).await;
            times.push(micros());
            guard.release().await.expect("it was held");
        }
        locks.close().await;
        times
    });
    let times: Vec<String> = times.iter().map(u64::to_string).collect();
    process::say(&times.join(" "));
}

/// Returns the machine's time in microseconds, which all processes share.
fn micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // The time is taken modulo one week, so that a number of the report represents it exactly.
    (since.expect("the clock is set").as_micros() % 604_800_000_000) as u64
}
