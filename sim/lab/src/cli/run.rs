//! The command `run`.

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::twice::Twice;
use super::{CliError, Drawn, Form, InLane, say, say_json, selection, write_file};
use crate::plan_file;
use crate::simulation::run;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_check::story;

/// Run one seed, or a plan from a file, and print its story.
#[derive(Debug, Args)]
pub(super) struct RunOne {
    /// A plan or a scenario in TOML, a failure in JSON, or the id of one of the simulator's scenarios.
    #[arg(value_name = "FILE|ID", conflicts_with_all = ["lock", "deployment", "variant", "nodes", "clients", "faults", "workload", "duration"])]
    file: Option<PathBuf>,
    /// The case of a scenario. By default, the first.
    #[arg(long, requires = "file")]
    case: Option<String>,
    /// The seed. By default, a scenario runs with the first seed that shows its effect.
    #[arg(long, required_unless_present = "file")]
    seed: Option<u64>,
    #[command(flatten)]
    lane: InLane,
    #[command(flatten)]
    drawn: Drawn,
    /// Print the plan in TOML instead of running it.
    #[arg(long)]
    plan: bool,
    /// Write the history to this file, as lines of JSON for other checkers.
    #[arg(long)]
    history: Option<PathBuf>,
    #[command(flatten)]
    twice: Twice,
    #[command(flatten)]
    form: Form,
}

impl RunOne {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let plan = match &self.file {
            Some(file) => {
                let source = selection::read(file, self.case.as_deref(), self.seed, self.lane)?;
                source.plan().clone()
            }
            None => self.drawn.generator(self.lane).plan(self.seed.unwrap_or(0)),
        };
        quorlock_sim_plan::check(&plan)?;
        if self.plan {
            say(&plan_file::write(&plan)?);
            return Ok(0);
        }
        let run = run(&Rc::new(plan));
        self.twice.check(&run)?;
        if let Some(file) = &self.history {
            write_file(file, &crate::study::export::lines(&run))?;
        }
        tell(&run, self.form)
    }
}

/// The output of one run with `--json`.
#[derive(Serialize)]
struct RunOutput<'a> {
    verdict: &'a Verdict,
    trace: String,
    plan: &'a quorlock_sim_plan::Plan,
    effects: &'a [u32],
    counters: quorlock_sim_world::world::Counters,
    holds: u32,
}

pub(super) fn tell(run: &Run, form: Form) -> Result<u8, CliError> {
    if form.json {
        say_json(&RunOutput {
            verdict: &run.verdict,
            trace: format!("{:016x}", run.trace),
            plan: &run.plan,
            effects: &run.effects,
            counters: run.counters,
            holds: run.history.holds,
        })?;
    } else {
        for line in story::tell(run) {
            say(&line);
        }
    }
    Ok(exit_code(&run.verdict))
}

fn exit_code(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Holds => 0,
        Verdict::Violated(violation) if violation.property.is_liveness() => 3,
        Verdict::Violated(_) => 2,
        Verdict::Vacuous => 4,
    }
}
