//! The command `chaos`.

mod asked;
mod compare;
mod control;
mod other_library;
mod storms;
mod table;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde::Serialize;

use self::asked::{Asked, classes, locks};
use self::other_library::{APART, Library};
use self::storms::Storms;
use self::table::{CellRow, table};
use super::{CliError, Form, InLane, complain, say, say_json, selection};
use crate::chaos::run::Observed;
use crate::chaos::{possible, worker};
use crate::plan_file;
use crate::study::matrix::StormWork;
use crate::study::predicted::Expected;
use quorlock_sim_world::history::Process;

/// The part of `chaos --help` below the options.
pub(super) const HELP: &str = "\
Examples:
  quorlock-sim chaos plan.toml --scale 10
  quorlock-sim chaos --class \"restarts, amnesia\" --minutes 5 --seed 7
  quorlock-sim chaos --class \"restarts, amnesia\" --workload leading --seed 7
  quorlock-sim chaos --class \"client pauses\" --lock published --json
  quorlock-sim chaos --class \"client crashes\" --beside redisson --seed 7
  quorlock-sim chaos --class flush --lock ours --plan > storm.toml && quorlock-sim run storm.toml
  quorlock-sim chaos compare --minutes 1

The command starts redis-server processes on free ports of the loopback interface, clients (this program, started again), and a proxy
for each pair of them. It injects the faults: SIGSTOP and SIGCONT, SIGKILL and a restart, truncated append-only files, FLUSHALL,
maxmemory that new keys exceed, DEBUG SLEEP, links that hold back, delay, drop, close or redirect, and wrong wall clocks of servers.
Clients read the clock of the machine before they check whether a guard is held. Exclusion is broken if two clients believe at the same
time that they hold one name, and fencing if a token is not larger than those before it. A wait with a bound is overrun if a client
comes back later than the bound and the measured lateness of the machine allow. The order of a fair lock is broken if a server grants
a name to an owner that is behind another one in its queue. No process outlives the command, even if the command is killed.
With --class elections, the nodes are Sentinel groups, whose real sentinels elect another primary when one is killed or stopped.
With --class \"cluster failovers\", the nodes are the shards of one real Redis Cluster, which promotes replicas and whose slots are moved.
With --class \"half-moved slots\", such moves pause for longer than a lease; with --class \"revoked keys\", servers refuse the keys of one
name for a while. There, each client also keeps holds that no fault concerns, and the run fails if one is lost. With --class
\"quiet restarts\", all servers restart between two uses of the lock, which is to be granted within a second all the same.
With --beside redisson, every second client is a JVM with Redisson's locks. Maven builds its program into target/chaos-redisson.

With --class, two locks run side by side: RedLock of this crate, and a control that must break in the same time. With --workload
several, a third lock runs, too: \"ours, MultiLock\", whose names are on two servers. Exit codes: 0 as expected, 1 wrong arguments or
no servers, 2 a claim is broken, or a client wrote to standard error, kept growing or did not end, 4 nothing was shown: the
control held, or there were too few holds.";

/// Run a plan on real servers.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Chaos {
    #[command(subcommand)]
    more: Option<More>,
    /// A plan or a scenario in TOML, or the id of one of the simulator's scenarios.
    #[arg(value_name = "FILE|ID", required_unless_present = "class", conflicts_with_all = ["class", "minutes"])]
    file: Option<PathBuf>,
    /// The case of a scenario. By default, the first.
    #[arg(long, requires = "file")]
    case: Option<String>,
    /// Run a storm of this class of faults instead of a plan; may be given several times.
    #[arg(long, value_parser = PossibleValuesParser::new(classes().map(|class| class.id)))]
    class: Vec<String>,
    /// Run only this lock; may be given several times. By default, RedLock of this crate and the control of the class,
    /// a lock that must break in the same time.
    #[arg(long, requires = "class", value_parser = PossibleValuesParser::new(lock_ids()))]
    lock: Vec<String>,
    /// The work of the clients in the storm.
    #[arg(long, requires = "class", value_enum, default_value_t)]
    workload: StormWork,
    /// Make every second client one of this library, on the same names. The lock is the one on one node, where both
    /// exclude each other; in the control, the other library's clients lock other names.
    #[arg(long, requires = "class", value_enum)]
    beside: Option<Library>,
    /// How long each storm lasts, in minutes.
    #[arg(long, default_value_t = 1.0, value_parser = storms::minutes)]
    minutes: f64,
    /// Multiply all times of the plan by this factor: with 10, a lease of 150 ms becomes 1.5 s.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    scale: u32,
    /// The seed of the faults and of the clients' random numbers. By default, the seed of the plan, or 0.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the plans in TOML instead of running them. `quorlock-sim run` runs such a plan in the simulator.
    #[arg(long)]
    plan: bool,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, Subcommand)]
enum More {
    Compare(compare::Compare),
}

/// The output of `--json`.
#[derive(Serialize)]
struct CellReport<'a> {
    lock: &'a str,
    class: &'a str,
    seed: u64,
    scale: u32,
    expected: Expected,
    wrong: Option<&'a str>,
    observed: &'a Observed,
}

/// Returns the ids of the locks that a storm can have.
fn lock_ids() -> impl Iterator<Item = &'static str> {
    locks().map(|lock| lock.id).chain([APART])
}

impl Chaos {
    pub(super) fn run(self) -> Result<u8, CliError> {
        if let Some(More::Compare(compare)) = self.more {
            return compare.run();
        }
        let asked = self.asked()?;
        if self.plan {
            for asked in &asked {
                say(&plan_file::write(&asked.plan)?);
            }
            return Ok(0);
        }
        other_library::prepare(&asked)?;
        let mut lines = Vec::new();
        let mut code = 0;
        // The locks of one class run side by side. The classes run one after another.
        for cells in asked.chunk_by(|a, b| a.class == b.class) {
            for (asked, observed) in cells.iter().zip(storms::side_by_side(cells, self.scale)?) {
                let wrong = asked.expected.wrong(&observed);
                if self.form.json {
                    say_json(&CellReport {
                        lock: &asked.lock,
                        class: &asked.class,
                        seed: asked.plan.seed,
                        scale: self.scale,
                        expected: asked.expected,
                        wrong: wrong.as_ref().map(|(_, what)| what.as_str()),
                        observed: &observed,
                    })?;
                }
                if let Some((of_it, what)) = wrong {
                    let (lock, class, seed) = (&asked.lock, &asked.class, asked.plan.seed);
                    complain(&format!("{lock}, {class}, seed {seed}: {what}"));
                    code = if code == 2 { 2 } else { of_it };
                }
                lines.push(CellRow {
                    class: asked.class.clone(),
                    lock: asked.lock.clone(),
                    observed,
                });
            }
        }
        if !self.form.json {
            say(&table(&lines));
        }
        Ok(code)
    }

    fn asked(&self) -> Result<Vec<Asked>, CliError> {
        let Some(path) = &self.file else {
            let storms = Storms {
                class: self.class.clone(),
                work: self.workload,
                beside: self.beside,
                lock: self.lock.clone(),
                minutes: self.minutes,
                scale: self.scale,
                seed: self.seed.unwrap_or(0),
            };
            return storms.asked(&["ours"]);
        };
        let source = selection::read(path, self.case.as_deref(), self.seed, InLane { lane: None })?;
        let plan = source.plan().clone();
        quorlock_sim_plan::check(&plan)?;
        if let Some(why) = possible::lacks_plan(&plan) {
            return Err(CliError::Other(why));
        }
        Ok(vec![Asked {
            lock: plan.variant.name().to_owned(),
            class: path.display().to_string(),
            // A user's plan may exceed what the lock promises to survive; `not_demanded` records that.
            expected: match plan.variant.has_product_clients() && plan.not_demanded.is_empty() {
                true => Expected::Holds { order: true },
                false => Expected::Anything,
            },
            plan,
            beside: None,
        }])
    }
}

/// The client process that `chaos` starts.
#[derive(Debug, Args)]
pub(super) struct ChaosClient {
    desk: u16,
    client: u16,
    restarts: u16,
}

impl ChaosClient {
    pub(super) fn run(self) -> u8 {
        let process = Process {
            client: self.client,
            restarts: self.restarts,
        };
        // If the command has ended, an error cannot be reported to any process.
        let _ = worker::run(self.desk, process);
        0
    }
}
