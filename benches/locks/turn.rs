//! One turn of a contestant, and its figures.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::case::{Amount, Case, Stored};
use crate::contestant::Contestant;
use crate::driver::program::Failure;
use crate::driver::program::{Job, Work};
use crate::process::Process;
use crate::servers::Servers;

/// The values of each figure: one from each turn, or many.
pub(crate) type Figures = BTreeMap<String, Vec<f64>>;

const LEASE: Duration = Duration::from_secs(30);

/// The processes of a contestant.
pub(crate) struct Team<'a> {
    case: &'a Case,
    amount: Amount,
    servers: &'a Servers,
    names: String,
    processes: Vec<Process>,
}

impl<'a> Team<'a> {
    pub(crate) fn start(
        contestant: Contestant,
        case: &'a Case,
        amount: Amount,
        servers: &'a Servers,
    ) -> Result<Self, Failure> {
        let is_alone = (contestant, case.work) == (Contestant::Bare, Work::HandOver);
        let job = Job {
            library: contestant.library().to_owned(),
            work: case.work,
            ports: servers.ports(),
            database: servers.database(),
            callers: if is_alone { 1 } else { case.callers },
            millis: amount.turn.as_millis() as u64,
            hold_micros: micros(case.hold),
            pause_micros: micros(case.way * 4),
            locks: match case.work {
                Work::Keep => amount.locks,
                _ => contestant.other_readers(),
            },
            // The contestants use the same servers. Each name has two digits, for equal lengths.
            names: format!("orders/{:02}", contestant as u8),
            lease_millis: LEASE.as_millis() as u64,
        };
        let start = |_| Process::start(contestant, &job);
        let mut processes = (0..case.processes)
            .map(start)
            .collect::<Result<Vec<_>, _>>()?;
        for process in &mut processes {
            process.expect("ready")?;
        }
        Ok(Team {
            case,
            amount,
            servers,
            names: job.names,
            processes,
        })
    }

    /// Does the work once, and adds its figures.
    pub(crate) fn take_turn(&mut self, figures: &mut Figures) -> Result<(), Failure> {
        let mut add = |figure: &str, values: Vec<f64>| {
            figures.entry(figure.to_owned()).or_default().extend(values);
        };
        match self.case.work {
            Work::Pairs => self.pairs(&mut add),
            Work::Acquire => self.acquire(&mut add),
            Work::Holds | Work::HandOver => self.holds(&mut add),
            Work::Keep => self.keep(&mut add),
        }
    }

    fn results(&mut self) -> Result<Vec<Value>, Failure> {
        for process in &mut self.processes {
            process.go()?;
        }
        self.processes.iter_mut().map(Process::result).collect()
    }

    fn pairs(&mut self, add: &mut impl FnMut(&str, Vec<f64>)) -> Result<(), Failure> {
        let before = (self.servers.processor_seconds(), self.client_seconds()?);
        let results = self.results()?;
        let spent = self.servers.processor_seconds() - before.0;
        let client = self.client_seconds()? - before.1;
        let [result] = results.as_slice() else {
            return Err("one process makes pairs".into());
        };
        let (pairs, micros) = (number(&result["pairs"]), number(&result["micros"]));
        add("pairs a second", vec![pairs * 1e6 / micros]);
        add("servers, us a pair", vec![spent * 1e6 / pairs]);
        add("client, us a pair", vec![client * 1e6 / pairs]);
        Ok(())
    }

    /// Returns the processor time of all processes so far, in seconds.
    fn client_seconds(&self) -> Result<f64, Failure> {
        self.processes.iter().map(Process::processor_seconds).sum()
    }

    fn acquire(&mut self, add: &mut impl FnMut(&str, Vec<f64>)) -> Result<(), Failure> {
        for result in self.results()? {
            add("acquire, us", numbers(&result["acquires"]));
            add("release, us", numbers(&result["releases"]));
            add("acquire and release, us", numbers(&result["pairs"]));
        }
        Ok(())
    }

    fn holds(&mut self, add: &mut impl FnMut(&str, Vec<f64>)) -> Result<(), Failure> {
        let counting = self.servers.count_commands(&self.names)?;
        let results = self.results()?;
        let commands = counting.commands() as f64;
        let holds_of = |result: &Value| -> Vec<Vec<f64>> {
            let holds = result["holds"].as_array();
            holds.map_or(Vec::new(), |holds| holds.iter().map(numbers).collect())
        };
        let shares: Vec<f64> = results.iter().map(|r| holds_of(r).len() as f64).collect();
        let mut holds: Vec<_> = results.iter().flat_map(holds_of).collect();
        holds.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let all = holds.len() as f64;
        // At the end some processes have stopped, and fewer compete for the lock: their holds do not count.
        let first = holds.first().map_or(0.0, |hold| hold[0]);
        let end = first + (micros(self.amount.turn) - micros(self.case.hold)) as f64;
        let during: Vec<_> = holds.iter().filter(|hold| hold[1] <= end).collect();
        let used: f64 = during.iter().map(|hold| hold[1] - hold[0]).sum();
        let idle = during
            .windows(2)
            .map(|pair| (pair[1][0] - pair[0][1]) / 1000.0);
        let idle: Vec<f64> = idle.collect();
        let overlaps = idle.iter().filter(|gap| **gap < 0.0).count();
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let span = during.last().map_or(0.0, |hold| hold[1]) - first;
        add("in use", vec![used / span]);
        add("idle p99, ms", vec![quantile(&idle, 0.99)]);
        add("idle longest, ms", vec![quantile(&idle, 1.0)]);
        add("idle, ms", idle);
        add(
            "least share / even",
            vec![least * shares.len() as f64 / all],
        );
        if self.case.store == Stored::Redis {
            add("commands a hold", vec![commands / all]);
        }
        add("holds a second", vec![during.len() as f64 * 1e6 / span]);
        add("overlaps", vec![overlaps as f64]);
        let mut requests: BTreeMap<&str, f64> = BTreeMap::new();
        for counts in results.iter().filter_map(|r| r["requests"].as_object()) {
            for (kind, count) in counts {
                *requests.entry(kind).or_default() += number(count);
            }
        }
        if !requests.is_empty() {
            let sum: f64 = requests.values().sum();
            add("requests a hold", vec![sum / all]);
        }
        for (kind, count) in requests {
            add(&format!("{kind} a hold"), vec![count / all]);
        }
        Ok(())
    }

    fn keep(&mut self, add: &mut impl FnMut(&str, Vec<f64>)) -> Result<(), Failure> {
        let [process] = self.processes.as_mut_slice() else {
            return Err("one process keeps".into());
        };
        let locks = self.amount.locks as f64;
        let empty = process.resident_bytes()?;
        process.go()?;
        process.expect("held")?;
        let acquired = process.resident_bytes()?;
        let (servers, client) = (
            self.servers.processor_seconds(),
            process.processor_seconds()?,
        );
        let began = Instant::now();
        std::thread::sleep(self.amount.turn);
        let percent = 100.0 / began.elapsed().as_secs_f64();
        let servers = self.servers.processor_seconds() - servers;
        let client = process.processor_seconds()? - client;
        let peak = process.resident_bytes()?.max(acquired);
        process.go()?;
        let held = number(&process.result()?["held"]);
        add("servers, % of a core", vec![servers * percent]);
        add("client, % of a core", vec![client * percent]);
        add("resident bytes a lock", vec![(peak - empty) / locks]);
        add(
            "resident bytes a lock, when acquired",
            vec![(acquired - empty) / locks],
        );
        add("lost", vec![locks - held]);
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .map_or(Vec::new(), |all| all.iter().map(number).collect())
}

/// Returns the value below which this share of the values is.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    let value = values.get((last * share).round() as usize);
    value.copied().unwrap_or(f64::NAN)
}
