//! The command line.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::failure::Code;
#[cfg(unix)]
use crate::leader;
#[cfg(not(unix))]
use crate::not_unix::Elsewhere;
#[cfg(unix)]
use crate::run;
use crate::{advise, doctor, manual, operate};

/// Distributed locks on Redis, PostgreSQL, MySQL, SQLite or etcd for scripts, jobs and operators.
///
/// Exit codes: 64 wrong command line, 69 no quorum of servers, 71 the system refused an operation, 74 the command
/// succeeded but the release of the lock is not confirmed, 75 others hold the lock (-E changes this code), 76 the lock
/// was lost while the command ran, 78 wrong settings, credentials or permissions, 126 and 127 as in env(1). Otherwise the exit code of the command, or 128 plus the number of the signal
/// that ended it.
#[derive(Debug, Parser)]
#[command(
    name = "quorlock",
    version,
    after_help = "Examples:
  export QUORLOCK_NODES=redis://127.0.0.1
  quorlock run -n nightly/report -- ./report.sh
  quorlock inspect nightly/report"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(unix)]
    #[command(after_help = "Examples:
  Do a job on one of many hosts; the others skip it:
    quorlock run -n --nodes redis://10.0.0.5 nightly/report -- ./report.sh
  Lock on a majority of three servers, and wait for at most a minute:
    quorlock run -w 1m --nodes redis://a,redis://b,redis://c deploy -- make deploy
  Let at most three hosts load data at once; the others wait for a permit:
    quorlock run --permits 3 load -- ./load.sh
  Send the fencing token with every write:
    quorlock run backup -- sh -c 'curl -T dump \"https://store/?token=$QUORLOCK_FENCING_TOKEN\"'
  Read the password from a file, so that ps does not show it:
    QUORLOCK_PASSWORD_FILE=/etc/quorlock.secret quorlock run --nodes redis://jobs@10.0.0.5 x -- ./x.sh")]
    Run(Box<run::Run>),
    #[cfg(unix)]
    #[command(after_help = "Examples:
  Run the scheduler on one of several hosts; another takes over when that one fails:
    quorlock leader --nodes redis://a,redis://b,redis://c scheduler -- ./scheduler
  Pass the term to the scheduler, which fences its writes with it:
    quorlock leader scheduler -- sh -c 'exec ./scheduler --term \"$QUORLOCK_TERM\"'
  Run a migration until it has ended by itself once:
    quorlock leader --once migrate -- ./migrate.sh")]
    Leader(Box<leader::Leader>),
    /// Run a command while a lock is held (Unix only).
    #[cfg(not(unix))]
    #[command(alias = "leader")]
    Run(Elsewhere),
    #[command(after_help = "Examples:
  Before a service goes live, with its settings and its user:
    quorlock doctor --config /etc/quorlock.toml
  A user who may lock some names only:
    quorlock doctor --nodes redis://orders@10.0.0.5 --name orders/doctor
  What is not ok, for a program:
    quorlock doctor --json | jq -r '.lines[] | select(.state != \"ok\") | .text'")]
    Doctor(doctor::Doctor),
    #[command(after_help = "Examples:
  All deployments:
    quorlock advise
  Three servers that fail independently, whose clocks may be stepped, and holders that survive an outage of 20 s:
    quorlock advise --servers 3 --clocks stepped --survive 20s
  One Sentinel group, for a resource that cannot compare tokens:
    quorlock advise --failover sentinel --resource cannot")]
    Advise(advise::Advise),
    #[command(after_help = "Examples:
  quorlock inspect nightly/report
  quorlock inspect --json orders/1 orders/2 | jq .state")]
    Inspect(operate::inspect::Inspect),
    #[command(after_help = "Example:
  quorlock force-release nightly/report")]
    ForceRelease(operate::force::ForceRelease),
    #[command(after_help = "Examples:
  quorlock init sqlite:/var/lib/jobs/locks.db
  quorlock init --print postgres://jobs@db.example/jobs | psql jobs")]
    Init(operate::init::Init),
    #[command(after_help = "Examples:
  quorlock list
  quorlock list 'orders/*' --json")]
    List(operate::list::List),
    #[command(after_help = "Example:
  quorlock watch --interval 200ms nightly/report")]
    Watch(operate::watch::Watch),
    #[command(after_help = "Example:
  quorlock completions bash >/etc/bash_completion.d/quorlock")]
    Completions(manual::Completions),
    #[command(after_help = "Example:
  quorlock man --out /usr/local/share/man/man1")]
    Man(manual::Man),
    /// Runs between `run` and the command, and ends the command in time.
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(run::guardian::Guard),
    /// Runs beside the guardian, and kills the command's processes if the guardian cannot.
    #[cfg(unix)]
    #[command(hide = true)]
    Sentry(run::sentry::Sentry),
    /// Prepares the process and becomes the command.
    #[cfg(unix)]
    #[command(hide = true)]
    Launch(run::launch::Launch),
}

pub(crate) fn main() -> ExitCode {
    let code = match Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Code::SUCCESS,
                _ => Code::USAGE,
            }
        }
    };
    ExitCode::from(code.0)
}

impl Cli {
    fn run(self) -> Code {
        match self.command {
            #[cfg(unix)]
            Command::Run(run) => run.run(),
            #[cfg(unix)]
            Command::Leader(leader) => leader.run(),
            #[cfg(not(unix))]
            Command::Run(elsewhere) => elsewhere.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Advise(advise) => advise.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::ForceRelease(force) => force.run(),
            Command::Init(init) => init.run(),
            Command::List(list) => list.run(),
            Command::Watch(watch) => watch.run(),
            Command::Completions(completions) => completions.run(&Cli::command()),
            Command::Man(man) => man.run(&Cli::command()),
            #[cfg(unix)]
            Command::Guard(guard) => guard.run(),
            #[cfg(unix)]
            Command::Sentry(sentry) => sentry.run(),
            #[cfg(unix)]
            Command::Launch(launch) => launch.run(),
        }
    }
}
