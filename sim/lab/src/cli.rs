//! The command line.

mod bench;
#[cfg(unix)]
mod chaos;
mod explore;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzed;
mod gallery;
mod help;
mod manual;
mod matrix;
mod merge;
mod rate;
mod recorded;
mod replay;
mod report;
mod run;
mod scenarios;
mod selection;
mod serve;
mod shrink;
mod stopwatch;
mod study;
mod twice;
mod why;

use std::io::{ErrorKind, Write as _};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::algorithm::{self, LockAlgorithm};
use crate::study::runs::RunsError;
use quorlock_sim_check::determinism::Difference;
use quorlock_sim_plan::generator::{Deployment, FaultChoice, PlanGenerator};
use quorlock_sim_plan::time::SimTime;
use quorlock_sim_plan::variant::{AlgorithmNodes, Variant};
use quorlock_sim_plan::{Lane, LockKind, Plan, WorkloadKind};

/// Run Quorlock's production locks against failing nodes, networks, clocks and processes.
///
/// Exit codes: 0 as expected, 1 wrong arguments or files, 2 safety violated, 3 no progress, 4 nothing shown, 5 not deterministic. shrink and
/// report exit with 0 when they have written their output, because for them a failure is the input, not the result.
#[derive(Debug, Parser)]
#[command(name = "quorlock-sim", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run many seeds on all cores.
    #[command(
        after_help = "Example:\n  quorlock-sim explore --seeds 0..100000 --lock redlock --faults inside --out failures"
    )]
    Explore(explore::Explore),
    /// Run one seed, or a plan from a file, and print its story.
    #[command(
        after_help = "Examples:\n  quorlock-sim run --seed 42 --lock single\n  quorlock-sim run plan.toml\n  quorlock-sim run Q3\n  quorlock-sim run Q3 --lane turmoil"
    )]
    Run(run::RunOne),
    /// Replay a failure from its file, event for event.
    #[command(after_help = "Example:\n  quorlock-sim replay failures/redlock-seed-42.json")]
    Replay(replay::Replay),
    /// Run the simulator's scenarios or your own, and compare the results with what they expect.
    #[command(
        after_help = "Examples:\n  quorlock-sim scenarios\n  quorlock-sim scenarios Q\n  quorlock-sim scenarios my/scenario.toml --rates\n  quorlock-sim scenarios --lane turmoil"
    )]
    Scenarios(scenarios::Scenarios),
    /// Serve simulated Redis servers on real ports, for redis-cli or any other client.
    #[command(
        after_help = "Examples:\n  quorlock-sim serve --port 7000 --nodes 3\n  quorlock-sim serve --fault \"kind = 'flush', at = '20s', node = 0\" --json"
    )]
    Serve(serve::Serve),
    /// Shrink a failure to a smaller plan that fails in the same way.
    ///
    /// The exit code is 0 if the shrunk failure was written.
    #[command(
        after_help = "Example:\n  quorlock-sim shrink failures/redlock-seed-42.json -o small.json"
    )]
    Shrink(shrink::Shrink),
    /// Write a page for the browser that shows a run: what clients believed, what nodes stored, and what went wrong.
    ///
    /// The exit code is 0 if the page was written, whatever it shows.
    #[command(
        after_help = "Examples:\n  quorlock-sim report failures/redlock-seed-42.json -o page.html\n  quorlock-sim report plan.toml --seed 7 --svg -o figure.svg"
    )]
    Report(report::Report),
    /// Write a page for the browser of every case of the scenarios, and an index of them.
    #[command(
        after_help = "Examples:\n  quorlock-sim gallery pages\n  quorlock-sim gallery pages Q --seeds 100\n  quorlock-sim gallery pages my/scenario.toml"
    )]
    Gallery(gallery::Gallery),
    /// Explain a violation: which faults and messages led to it, and without which of them the property would have held.
    #[command(
        after_help = "Examples:\n  quorlock-sim why failures/redlock-seed-42.json\n  quorlock-sim why Q5 --case published -o why.html"
    )]
    Why(why::WhyRun),
    /// Add up the results of shards, which any command wrote with --results.
    #[command(after_help = "Example:\n  quorlock-sim merge shard-0 shard-1 --out whole")]
    Merge(merge::Merge),
    /// Run every lock against every class of fault, and count how often exclusion and fencing break.
    #[command(
        after_help = "Examples:\n  quorlock-sim matrix --runs 10000 --out matrix\n  quorlock-sim matrix --runs 200000 --lock ours --class steps --class partitions"
    )]
    Matrix(matrix::MatrixRun),
    /// Estimate how often the lock of a deployment breaks, with bounds.
    #[command(
        after_help = "Example:\n  quorlock-sim rate sim/studies/deployments/one-server.toml --relative-error 0.1 --for 10m\n\nA deployment:\n  horizon = \"1y\"\n  [plan]\n  lock = \"single\"\n  nodes = { count = 1, persistence = \"memory\" }\n  [[process]]\n  kind = \"crash-node\"\n  each = \"node\"\n  rate = \"1/30d\"\n  restart_after = \"5s\""
    )]
    Rate(rate::Rate),
    /// Vary or draw the numbers of a plan, and measure how often each lock breaks, with bounds, tables and pictures.
    #[command(
        after_help = "Examples:\n  quorlock-sim study sim/studies/drift.toml --out drift\n  quorlock-sim study drift.toml --commit $(git rev-parse HEAD) --results night --for 8h\n\nA study:\n  title = \"Double holds against the drift of a node's clock\"\n  runs = 1000\n  [plan]\n  lock = \"single\"\n  faults = [{ kind = \"node-rate\", at = \"0s\", node = 0, rate_ppm = 0 }]\n  [grid]\n  plan.faults.0.rate_ppm = { from = 0, to = 40000, points = 9, as = \"drift\" }\n  [[lock]]\n  name = \"published\"\n  plan = { variant = \"published\" }\n  [[lock]]\n  name = \"ours\""
    )]
    Study(study::Study),
    /// Run a plan on real servers, with real processes, sockets and signals, and the same history and checkers.
    #[cfg(unix)]
    #[command(after_long_help = chaos::HELP, after_help = chaos::HELP)]
    Chaos(chaos::Chaos),
    /// A client process of chaos.
    #[cfg(unix)]
    #[command(hide = true)]
    ChaosClient(chaos::ChaosClient),
    /// Measure how fast this machine runs simulations.
    #[command(after_help = "Example:\n  quorlock-sim bench --json")]
    Bench(bench::Bench),
    #[command(
        after_help = "Example:\n  quorlock-sim completions bash >/etc/bash_completion.d/quorlock-sim"
    )]
    Completions(manual::Completions),
    #[command(after_help = "Example:\n  quorlock-sim man --out /usr/local/share/man/man1")]
    Man(manual::Man),
}

/// The options from which plans are drawn.
#[derive(Clone, Debug, Args)]
struct Drawn {
    /// The kind of lock. A registered algorithm prescribes it.
    #[arg(long, value_enum, default_value_t = LockArg::Redlock)]
    lock: LockArg,
    /// The kind of nodes: servers; or, only in the lane turmoil, sentinels (each node is a Sentinel group with
    /// elections) or cluster (each node is a shard of one Redis Cluster; with the lock single, the cluster is the node);
    /// or, only in the lane fast, stores (each node is a database or a consensus store; in a majority also a server).
    #[arg(long, value_enum, default_value_t = DeploymentArg::Servers)]
    deployment: DeploymentArg,
    /// The implementation of the lock: the product's, or one of the simulator's variants, most of them with deliberate
    /// flaws.
    #[arg(long, default_value_t = Variant::Product)]
    variant: Variant,
    /// The number of nodes. By default, it is drawn from the seed.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=15))]
    nodes: Option<u16>,
    /// The number of clients. By default, it is drawn from the seed.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=60))]
    clients: Option<u16>,
    /// The faults: inside (those that the lock's stated assumptions allow), all, none, or a list such as
    /// cut,pause-client.
    #[arg(long, default_value_t = FaultChoice::Inside)]
    faults: FaultChoice,
    /// The kind of work. By default, it is drawn from the seed.
    #[arg(long, value_parser = work())]
    workload: Option<WorkloadKind>,
    /// How long the clients work, for example 2s.
    #[arg(long)]
    duration: Option<SimTime>,
}

/// The option for the lane.
#[derive(Clone, Copy, Debug, Args)]
struct InLane {
    /// How messages are carried: fast passes requests and replies as values; turmoil carries the bytes of the real
    /// client over simulated TCP, to servers that run the real Lua scripts. By default, the lane of the plan, or fast.
    #[arg(long, value_enum)]
    lane: Option<LaneArg>,
}

impl InLane {
    /// Sets the lane of a plan, if one was named.
    fn put(self, plan: &mut Plan) {
        if let Some(lane) = self.lane {
            plan.lane = lane.of_plan();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LaneArg {
    Fast,
    Turmoil,
}

impl LaneArg {
    fn of_plan(self) -> Lane {
        match self {
            LaneArg::Fast => Lane::Fast,
            LaneArg::Turmoil => Lane::Turmoil,
        }
    }
}

impl Drawn {
    /// Returns the nodes that a registered algorithm prescribes.
    fn nodes_of_algorithm(&self) -> Option<AlgorithmNodes> {
        self.variant.algorithm().map(|algorithm| algorithm.nodes())
    }

    fn is_of_stores(&self) -> bool {
        self.nodes_of_algorithm()
            .is_some_and(AlgorithmNodes::is_store)
    }

    fn generator(&self, lane: InLane) -> PlanGenerator {
        PlanGenerator {
            faults: self.faults.clone(),
            lane: lane.lane.map(LaneArg::of_plan).unwrap_or_default(),
            deployment: match self.deployment {
                _ if self.is_of_stores() => Deployment::Stores,
                DeploymentArg::Servers => Deployment::Servers,
                DeploymentArg::Sentinels => Deployment::Groups,
                DeploymentArg::Cluster => Deployment::Clusters,
                DeploymentArg::Stores => Deployment::Stores,
            },
            lock: match self.lock {
                _ if self.nodes_of_algorithm() == Some(AlgorithmNodes::Majority) => {
                    LockKind::Redlock
                }
                _ if self.nodes_of_algorithm().is_some() => LockKind::Single,
                LockArg::Single => LockKind::Single,
                LockArg::Multi => LockKind::Multi,
                LockArg::Redlock => LockKind::Redlock,
            },
            variant: self.variant,
            nodes: self.nodes,
            clients: self.clients,
            workload: self.workload,
            duration: self.duration,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DeploymentArg {
    Servers,
    Sentinels,
    Cluster,
    Stores,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LockArg {
    Single,
    Multi,
    Redlock,
}

/// Parses the kinds of work by their names in plans.
fn work() -> impl TypedValueParser<Value = WorkloadKind> {
    let names = PossibleValuesParser::new(WorkloadKind::ALL.map(WorkloadKind::name));
    names.map(|name| {
        let mut kinds = WorkloadKind::ALL.into_iter();
        kinds.find(|kind| kind.name() == name).unwrap_or_default()
    })
}

/// The option for the output format.
#[derive(Clone, Copy, Debug, Args)]
struct Form {
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// An error outside of the runs. It leads to exit code 1.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error(transparent)]
    File(#[from] crate::study::failure::FileError),
    #[error(transparent)]
    Source(#[from] crate::study::source::SourceError),
    #[error(transparent)]
    Scenario(#[from] crate::study::scenario::ScenarioError),
    #[error(transparent)]
    Study(#[from] crate::study::experiment::StudyError),
    #[error(transparent)]
    Plan(#[from] quorlock_sim_plan::PlanError),
    #[error(transparent)]
    PlanFile(#[from] crate::plan_file::PlanFileError),
    #[error(transparent)]
    Merge(#[from] crate::study::results::MergeError),
    #[error(transparent)]
    Results(#[from] crate::study::results::ResultsError),
    #[error(transparent)]
    Runs(#[from] RunsError),
    #[error(transparent)]
    Lacks(#[from] crate::turmoil::Lacks),
    #[error(transparent)]
    Differs(#[from] Box<Difference>),
    #[error("{0}")]
    Other(String),
}

impl CliError {
    fn exit_code(&self) -> u8 {
        match self {
            CliError::Differs(_) | CliError::Runs(RunsError::Differs(_)) => 5,
            _ => 1,
        }
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    main_with(&[])
}

/// Runs the command line of this process with [algorithms](crate::algorithm) of your own: plans name them as `variant`, and the
/// matrix has a column for each.
#[must_use]
pub fn main_with(algorithms: &[&'static dyn LockAlgorithm]) -> ExitCode {
    for algorithm in algorithms {
        if let Err(error) = algorithm::register(*algorithm) {
            complain(&error.to_string());
            return ExitCode::from(1);
        }
    }
    let parsed = help::command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // A request for help is not an error and goes to stdout.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    #[cfg(unix)]
    if !matches!(cli.command, Command::ChaosClient(_)) {
        crate::study::progress::tell_on_signal();
    }
    let code = match cli.command {
        Command::Explore(explore) => explore.run(),
        Command::Run(run) => run.run(),
        Command::Replay(replay) => replay.run(),
        Command::Scenarios(scenarios) => scenarios.run(),
        Command::Serve(serve) => serve.run(),
        Command::Shrink(shrink) => shrink.run(),
        Command::Report(report) => report.run(),
        Command::Gallery(gallery) => gallery.run(),
        Command::Merge(merge) => merge.run(),
        Command::Why(why) => why.run(),
        Command::Matrix(matrix) => matrix.run(),
        Command::Rate(rate) => rate.run(),
        Command::Study(study) => study.run(),
        #[cfg(unix)]
        Command::Chaos(chaos) => chaos.run(),
        #[cfg(unix)]
        Command::ChaosClient(client) => Ok(client.run()),
        Command::Bench(bench) => bench.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(trouble) => {
            complain(&trouble.to_string());
            ExitCode::from(trouble.exit_code())
        }
    }
}

/// Prints a line.
///
/// `run S9 | head -1` closes the pipe after the first line. The remaining lines are then discarded, and the exit code
/// stays that of the work. Any other error, such as a full disk, ends the process with exit code 1, so that incomplete
/// output is not mistaken for complete output.
fn say(line: &str) {
    let written = writeln!(std::io::stdout().lock(), "{line}");
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        complain(&format!("standard output: {error}"));
        std::process::exit(1);
    }
}

fn complain(line: &str) {
    // If stderr cannot be written, there is no other place for a report.
    let _ = writeln!(std::io::stderr().lock(), "error: {line}");
}

/// The result of many runs with `--json`, for every command.
#[derive(serde::Serialize)]
struct Printed<T> {
    command: &'static str,
    /// Whether all runs have ended that the command asked for.
    is_complete: bool,
    cells: Vec<PrintedCell<T>>,
}

#[derive(serde::Serialize)]
struct PrintedCell<T> {
    cell: String,
    #[serde(flatten)]
    result: T,
}

fn say_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value).map_err(|error| CliError::Other(error.to_string()))?;
    say(&text);
    Ok(())
}

/// Writes a file and creates its folder if needed.
fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    let wrong = |error: std::io::Error| CliError::Other(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    std::fs::write(path, text).map_err(wrong)
}

/// The option for the number of threads.
#[derive(Clone, Copy, Debug, Args)]
struct Threads {
    /// The number of threads. By default, one per core.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

impl Threads {
    fn count(self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.jobs.map_or_else(cores, usize::from)
    }
}

/// Parses a range of seeds, `A..B`.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("{text:?} is not a range of seeds: write for example 0..1000");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let from = from.trim().parse().map_err(|_| wrong())?;
    let to = to.trim().parse().map_err(|_| wrong())?;
    if to <= from {
        return Err(wrong());
    }
    Ok(from..to)
}

/// The option of every command that writes failures.
#[derive(Clone, Debug, Args)]
struct Out {
    /// Write failures to this folder.
    #[arg(long, default_value = "failures")]
    out: PathBuf,
}
