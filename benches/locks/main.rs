//! Measures the locks on real servers, beside their bare scripts and other libraries: one list of cases, one report.
//!
//! All figures are ratios, counts or times of one run. The contestants of a case use the same servers and take turns in
//! random order, so that other load of the machine affects all of them equally. Quorlock takes part twice: the
//! difference between its two figures is the noise of the machine.

mod bar;
mod case;
mod contestant;
mod driver;
mod process;
mod report;
mod results;
mod servers;
mod turn;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use quorlock_testbed::{postgres, server};
use rand::seq::SliceRandom as _;

use crate::case::{Case, Stored};
use crate::contestant::Contestant;
use crate::driver::program::Work;
use crate::results::Results;
use crate::servers::Servers;
use crate::turn::Team;

/// Measure the locks on real servers, beside their bare scripts and other libraries, in turn.
#[derive(Debug, Parser)]
#[command(
    name = "cargo bench -p quorlock-bench --bench locks --",
    after_help = "Examples:
  cargo bench -p quorlock-bench --bench locks -- --quick           all cases, in minutes
  cargo bench -p quorlock-bench --bench locks -- acquire callers   those with one of these words in their names
  cargo bench -p quorlock-bench --bench locks -- --peer quorlock --peer control --peer rslock callers
  benches/peers/run.sh --quick callers                             with rlock, redsync, Redisson and node-redlock

Each contestant has processes of its own. A bar is a target for a figure of Quorlock, alone or divided by that of another
contestant; 'control' is the noise of the machine, and a difference that is not larger means nothing.

Exit codes: 0 measured, whether or not targets are met; 1 not measured, or not all of it; 2 wrong arguments."
)]
struct Arguments {
    /// Measure only the cases whose names contain one of these words [default: all]
    case: Vec<String>,
    /// Take fewer and shorter turns; the figures are noisier
    #[arg(long)]
    quick: bool,
    /// Measure only this contestant; may be given several times [default: those that need no other program]
    #[arg(long = "peer")]
    peers: Vec<Contestant>,
    /// List the cases without measuring them
    #[arg(long)]
    list: bool,
    /// Print one line of JSON for each bar and each figure
    #[arg(long)]
    json: bool,
    /// Cargo passes this to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    if let Some(code) = driver::run_if_asked() {
        return code;
    }
    let arguments = Arguments::parse();
    bar::check();
    if arguments.list {
        for case in case::ALL {
            println!("{:16} {}", case.name, case.about);
        }
        return ExitCode::SUCCESS;
    }
    if !server::is_installed() {
        eprintln!(
            "redis-server is not on the PATH, but these benchmarks need real servers.\n\
             Install it (apt-get install redis-server) and run again, \
             or run `cargo bench -p quorlock-bench --bench core`, which needs no server."
        );
        return ExitCode::FAILURE;
    }
    let is_wanted = |case: &&Case| {
        let mut words = arguments.case.iter();
        arguments.case.is_empty() || words.any(|word| case.name.contains(word.as_str()))
    };
    let chosen: Vec<_> = case::ALL.iter().filter(is_wanted).collect();
    if chosen.is_empty() {
        eprintln!("No case has one of these words in its name. See --list.");
        return ExitCode::from(2);
    }
    let mut run = Run::new(arguments);
    for case in &chosen {
        let turns = case.amount(run.arguments.quick).turns;
        let contestants = run.contestants(case).len() as u64;
        run.bar.inc_length(turns * contestants);
    }
    for case in chosen {
        run.measure(case);
    }
    run.bar.finish_and_clear();
    report::print(&run.results, run.arguments.json);
    if run.is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The time between two lines of progress where there is no terminal for a bar.
const BETWEEN_LINES: Duration = Duration::from_secs(15);

struct Run {
    arguments: Arguments,
    bar: ProgressBar,
    said: Instant,
    results: Results,
    /// Whether no contestant was left out of a case.
    is_whole: bool,
}

impl Run {
    fn new(arguments: Arguments) -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {elapsed}");
        bar.set_style(style.expect("BUG: a template"));
        Run {
            arguments,
            bar,
            said: Instant::now(),
            results: Results::default(),
            is_whole: true,
        }
    }

    fn contestants(&self, case: &Case) -> Vec<Contestant> {
        let is_chosen = |contestant: &Contestant| match self.arguments.peers.as_slice() {
            [] => contestant.is_built_in(),
            peers => peers.contains(contestant),
        };
        let contestants = case.contestants.iter().copied();
        contestants.filter(is_chosen).collect()
    }

    fn measure(&mut self, case: &Case) {
        let contestants = self.contestants(case);
        self.say(&format!("{}: {}", case.name, case.about));
        if case.store == Stored::Table && postgres::installed().is_none() {
            self.say("  left out: PostgreSQL is not installed (apt-get install postgresql)");
            self.is_whole = false;
            return;
        }
        // Kept locks stay at the servers when the work is over: each contestant has servers of its own.
        let beside = match case.work {
            Work::Keep => 1,
            _ => contestants.len().max(1),
        };
        for contestants in contestants.chunks(beside) {
            self.take_turns(case, contestants);
        }
    }

    /// Lets contestants take turns on the same servers. One that fails is left out, and the others go on.
    fn take_turns(&mut self, case: &Case, contestants: &[Contestant]) {
        let amount = case.amount(self.arguments.quick);
        let servers = match case.store {
            Stored::Redis => Servers::start(case.nodes, case.way),
            Stored::Table => Servers::start_database(),
        };
        let mut teams = Vec::new();
        for contestant in contestants {
            self.progress(&format!("{}, {} starts", case.name, contestant.name()));
            match Team::start(*contestant, case, amount, &servers) {
                Ok(team) => teams.push((*contestant, team)),
                Err(error) => self.leave_out(case, *contestant, &*error),
            }
        }
        for _ in 0..amount.turns {
            teams.shuffle(&mut rand::rng());
            teams.retain_mut(|(contestant, team)| {
                self.bar.inc(1);
                self.progress(&format!("{}, {}", case.name, contestant.name()));
                let results = self.results.0.entry(case.name).or_default();
                let turn = team.take_turn(results.entry(*contestant).or_default());
                let Err(error) = turn else { return true };
                self.leave_out(case, *contestant, &*error);
                false
            });
        }
    }

    fn leave_out(&mut self, case: &Case, contestant: Contestant, error: &dyn std::error::Error) {
        self.say(&format!(
            "left out of {}: {}: {error}",
            case.name,
            contestant.name()
        ));
        self.is_whole = false;
        if let Some(results) = self.results.0.get_mut(case.name) {
            results.remove(&contestant);
        }
    }

    fn progress(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
        if self.bar.is_hidden() && BETWEEN_LINES < self.said.elapsed() {
            let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
            self.say(&format!("  turn {done} of {all}: {what}"));
        }
    }

    fn say(&mut self, line: &str) {
        self.said = Instant::now();
        self.bar.suspend(|| eprintln!("{line}"));
    }
}
