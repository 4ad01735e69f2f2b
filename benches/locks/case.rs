//! The kinds of work, and the figures of each.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::driver::{Driver, Job};
use crate::peer::Peer;
use crate::servers::Servers;

/// Figures by name.
pub(crate) type Figures = BTreeMap<&'static str, f64>;

/// A kind of work in a setting.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) nodes: usize,
    /// Delay of a message from a client to a server, or back.
    pub(crate) way: Duration,
    pub(crate) processes: usize,
    /// Number of callers in each process.
    pub(crate) callers: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pairs,
    Acquire,
    Holds,
    Keep,
}

/// The amount of work.
#[derive(Clone, Copy)]
pub(crate) struct Amount {
    pub(crate) millis: u64,
    pub(crate) locks: usize,
    /// How long locks are kept.
    pub(crate) kept: Duration,
}

/// The length of a hold in a hand-over.
const HOLD: Duration = Duration::from_millis(5);

const LEASE: Duration = Duration::from_secs(30);

const fn work(name: &'static str, about: &'static str, nodes: usize, kind: Kind) -> Work {
    Work {
        name,
        about,
        nodes,
        way: Duration::ZERO,
        processes: 1,
        callers: 1,
        kind,
    }
}

const fn callers(work: Work, callers: usize) -> Work {
    Work { callers, ..work }
}

const fn processes(work: Work, processes: usize) -> Work {
    Work { processes, ..work }
}

/// All work that is measured.
pub(crate) const ALL: [Work; 12] = [
    callers(
        work(
            "callers-1",
            "64 callers on names of their own, one server",
            1,
            Kind::Pairs,
        ),
        64,
    ),
    callers(
        work(
            "callers-5",
            "64 callers on names of their own, five servers",
            5,
            Kind::Pairs,
        ),
        64,
    ),
    work(
        "acquire-1",
        "one caller, a free name, one server",
        1,
        Kind::Acquire,
    ),
    work(
        "acquire-5",
        "one caller, a free name, five servers",
        5,
        Kind::Acquire,
    ),
    Work {
        way: Duration::from_micros(500),
        ..work(
            "acquire-5-1ms",
            "the same with a round trip of a millisecond",
            5,
            Kind::Acquire,
        )
    },
    processes(
        work(
            "two-1",
            "two processes that ask again at once, one server",
            1,
            Kind::Holds,
        ),
        2,
    ),
    processes(
        work(
            "two-5",
            "two processes that ask again at once, five servers",
            5,
            Kind::Holds,
        ),
        2,
    ),
    processes(
        work(
            "ten-1",
            "ten processes that ask again at once, one server",
            1,
            Kind::Holds,
        ),
        10,
    ),
    processes(
        work(
            "ten-5",
            "ten processes that ask again at once, five servers",
            5,
            Kind::Holds,
        ),
        10,
    ),
    callers(
        work(
            "waiters-1",
            "50 waiters of one process, one server",
            1,
            Kind::Holds,
        ),
        50,
    ),
    callers(
        work(
            "waiters-5",
            "50 waiters of one process, five servers",
            5,
            Kind::Holds,
        ),
        50,
    ),
    work("keep-1", "locks that are kept, one server", 1, Kind::Keep),
];

impl Work {
    pub(crate) fn works_on(self, peer: Peer) -> bool {
        // Without a client, no call waits, and nothing is renewed.
        let has_client = peer != Peer::Bare || matches!(self.kind, Kind::Pairs | Kind::Acquire);
        has_client && peer.works_on(self.nodes, self.processes)
    }

    /// Makes one library do the work once. Returns the figures.
    pub(crate) fn measure(
        self,
        peer: Peer,
        amount: Amount,
        folder: &Path,
    ) -> Result<Figures, Failure> {
        let servers = Servers::start(self.nodes, self.way);
        let job = Job {
            peer: "",
            work: match self.kind {
                Kind::Pairs => "pairs",
                Kind::Acquire => "acquire",
                Kind::Holds => "holds",
                Kind::Keep => "keep",
            },
            ports: servers.ports(),
            callers: self.callers,
            millis: amount.millis,
            hold_micros: micros(HOLD),
            pause_micros: micros(self.way * 4),
            locks: amount.locks,
            names: "orders".into(),
            lease_millis: LEASE.as_millis() as u64,
        };
        let start = |_| Driver::start(peer, &job, folder);
        let mut drivers = (0..self.processes)
            .map(start)
            .collect::<Result<Vec<_>, _>>()?;
        match self.kind {
            Kind::Keep => keep(&mut drivers, &servers, amount),
            Kind::Holds => holds(&mut drivers, &servers, amount),
            Kind::Pairs | Kind::Acquire => uncontended(&mut drivers, &servers),
        }
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn uncontended(drivers: &mut [Driver], servers: &Servers) -> Result<Figures, Failure> {
    let before = servers.processor_seconds();
    let mut figures = Figures::new();
    for driver in drivers {
        driver.go()?;
        let result = driver.result()?;
        if let Some(pairs) = result.get("pairs").and_then(Value::as_f64) {
            let seconds = result
                .get("micros")
                .and_then(Value::as_f64)
                .unwrap_or(f64::NAN)
                / 1e6;
            let spent = servers.processor_seconds() - before;
            figures.insert("pairs a second", pairs / seconds);
            figures.insert("servers, us a pair", spent * 1e6 / pairs);
        } else {
            let mut acquires: Vec<f64> = numbers(result.get("acquires"));
            figures.insert("median, us", quantile(&mut acquires, 0.5));
            figures.insert("p99, us", quantile(&mut acquires, 0.99));
        }
    }
    Ok(figures)
}

fn holds(drivers: &mut [Driver], servers: &Servers, amount: Amount) -> Result<Figures, Failure> {
    let counting = servers.count_commands()?;
    for driver in &mut *drivers {
        driver.go()?;
    }
    let mut holds = Vec::new();
    let mut shares = Vec::new();
    for driver in drivers.iter_mut() {
        let result = driver.result()?;
        let own = result
            .get("holds")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        shares.push(own.len() as f64);
        holds.extend(own.iter().map(|hold| numbers(Some(hold))));
    }
    let commands = counting.commands() as f64;
    holds.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let all = holds.len() as f64;
    // At the end some processes have stopped, and fewer compete for the lock: their holds do not count.
    let first = holds.first().map_or(0.0, |hold| hold[0]);
    let end = first + amount.millis as f64 * 1000.0 - micros(HOLD) as f64;
    let during: Vec<_> = holds.iter().filter(|hold| hold[1] <= end).collect();
    let used: f64 = during.iter().map(|hold| hold[1] - hold[0]).sum();
    let mut idle: Vec<f64> = during
        .windows(2)
        .map(|pair| (pair[1][0] - pair[0][1]) / 1000.0)
        .collect();
    let overlaps = idle.iter().filter(|gap| **gap < 0.0).count();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let last = during.last().map_or(0.0, |hold| hold[1]);
    Ok(Figures::from([
        ("in use", used / (last - first)),
        ("idle p99, ms", quantile(&mut idle, 0.99)),
        ("idle longest, ms", quantile(&mut idle, 1.0)),
        ("least share / even", least * shares.len() as f64 / all),
        ("commands a hold", commands / all),
        ("holds a second", during.len() as f64 * 1e6 / (last - first)),
        ("overlaps", overlaps as f64),
    ]))
}

fn keep(drivers: &mut [Driver], servers: &Servers, amount: Amount) -> Result<Figures, Failure> {
    let [driver] = drivers else {
        return Err("one process keeps".into());
    };
    driver.go()?;
    driver.expect("held")?;
    let (before, began) = (servers.processor_seconds(), Instant::now());
    std::thread::sleep(amount.kept);
    let spent = servers.processor_seconds() - before;
    let percent = 100.0 * spent / began.elapsed().as_secs_f64();
    driver.go()?;
    let held = driver.result()?;
    let held = held.get("held").and_then(Value::as_f64).unwrap_or(f64::NAN);
    Ok(Figures::from([
        ("servers, % of a core", percent),
        ("lost", amount.locks as f64 - held),
    ]))
}

fn numbers(value: Option<&Value>) -> Vec<f64> {
    let all = value
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_f64).collect()
}

/// Returns the value below which this share of the values is.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    values
        .get((last * share).round() as usize)
        .copied()
        .unwrap_or(f64::NAN)
}
