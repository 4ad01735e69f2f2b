//! The command `shrink`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::selection::Chosen;
use super::{CliError, Form, say, say_json, write_file};
use crate::simulation::run;
use crate::study::failure::Failure;
use crate::study::progress::{self, Counting};
use crate::study::shrink::shrink;
use quorlock_sim::shrink::{Identity, Shrunk, Size};
use quorlock_sim_check::run::Verdict;

/// Shrink a failure to a smaller plan that fails in the same way.
///
/// The exit code is 0 if the shrunk failure was written.
#[derive(Debug, Args)]
pub(super) struct Shrink {
    #[command(flatten)]
    chosen: Chosen,
    /// Write the shrunk failure to this file.
    #[arg(short, long)]
    out: PathBuf,
    /// Stop after this many runs.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: u32,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct ShrinkOutput<'a> {
    out: &'a PathBuf,
    identity: &'a Identity,
    before: Size,
    after: Size,
    runs: u32,
    verdict: &'a Verdict,
}

impl Shrink {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let source = self.chosen.read()?;
        let plan = source.plan();
        let first = run(&std::rc::Rc::new(plan.clone()));
        source.check(self.chosen.path(), &first)?;
        let bar = progress::bar(u64::from(self.runs), Counting::Search);
        let shrunk = shrink(plan, self.runs, &mut |runs, size| {
            bar.set_position(u64::from(runs));
            bar.set_message(in_words(size));
        });
        bar.finish_and_clear();
        let Some(shrunk) = shrunk else {
            let path = self.chosen.path().display();
            return Err(CliError::Other(format!(
                "{path}: this does not fail with seed {}: find a seed that fails with `quorlock-sim scenarios` or `explore`",
                plan.seed
            )));
        };
        self.tell(&shrunk)
    }

    fn tell(&self, shrunk: &Shrunk) -> Result<u8, CliError> {
        let failure = Failure::of(&shrunk.run);
        let text = serde_json::to_string_pretty(&failure);
        let text = text.map_err(|error| CliError::Other(error.to_string()))?;
        write_file(&self.out, &text)?;
        if self.form.json {
            say_json(&ShrinkOutput {
                out: &self.out,
                identity: &shrunk.identity,
                before: shrunk.before,
                after: shrunk.after,
                runs: shrunk.runs,
                verdict: &shrunk.run.verdict,
            })?;
        } else {
            say(&format!("before: {}", in_words(&shrunk.before)));
            say(&format!("after:  {}", in_words(&shrunk.after)));
            say(&format!("{} runs", shrunk.runs));
            say(&quorlock_sim_check::story::summary(&shrunk.run));
            say(&format!("quorlock-sim replay {}", self.out.display()));
        }
        Ok(0)
    }
}

fn in_words(size: &Size) -> String {
    format!(
        "{} faults, {} clients, {} nodes, {} operations, {} events",
        size.faults, size.clients, size.nodes, size.operations, size.events
    )
}
