//! `run`.

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::{Drawn, Form, Trouble, say, say_json, write_file};
use crate::simulation::{Run, Verdict, run};
use crate::{plan_file, story};

/// Run one seed, or a plan from a file, and tell its story.
#[derive(Debug, Args)]
pub(super) struct RunOne {
    /// A plan in TOML.
    #[arg(conflicts_with_all = ["lock", "variant", "nodes", "clients", "faults", "workload", "duration"])]
    file: Option<PathBuf>,
    /// The seed.
    #[arg(long, required_unless_present = "file")]
    seed: Option<u64>,
    #[command(flatten)]
    drawn: Drawn,
    /// Print the plan in TOML instead of running it.
    #[arg(long)]
    plan: bool,
    /// Write the history to this file, as JSON lines for other checkers.
    #[arg(long)]
    history: Option<PathBuf>,
    #[command(flatten)]
    form: Form,
}

impl RunOne {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let mut plan = match &self.file {
            Some(file) => plan_file::read(file)?,
            None => self.drawn.swarm().plan(self.seed.unwrap_or(0)),
        };
        if let Some(seed) = self.seed {
            plan.seed = seed;
        }
        plan_file::check(&plan)?;
        if self.plan {
            say(&plan_file::write(&plan)?);
            return Ok(0);
        }
        let run = run(&Rc::new(plan));
        if let Some(file) = &self.history {
            write_file(file, &crate::export::lines(&run.history))?;
        }
        tell(&run, self.form)
    }
}

/// One run as a JSON object.
#[derive(Serialize)]
struct Told<'a> {
    verdict: &'a Verdict,
    trace: String,
    plan: &'a crate::plan::Plan,
    effects: &'a [u32],
    counters: crate::Counters,
    holds: u32,
}

pub(super) fn tell(run: &Run, form: Form) -> Result<u8, Trouble> {
    if form.json {
        say_json(&Told {
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

pub(super) fn exit_code(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Holds => 0,
        Verdict::Violated(violation) if violation.property.is_liveness() => 3,
        Verdict::Violated(_) => 2,
        Verdict::Vacuous => 4,
    }
}
