//! The command `report`.

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::selection::Chosen;
use super::{CliError, Form, say, say_json, write_file};
use crate::plan_file;
use crate::simulation::run_recorded;
use quorlock_sim::report::{Picture, figure, page, picture};
use quorlock_sim_check::run::Verdict;
use quorlock_sim_check::story;
use quorlock_sim_plan::Lane;

/// Write a page for the browser that shows a run: what clients believed, what nodes stored, and what went wrong.
///
/// The exit code is 0 if the page was written, whatever it shows.
#[derive(Debug, Args)]
pub(super) struct Report {
    #[command(flatten)]
    chosen: Chosen,
    /// Write the page to this file.
    #[arg(short, long, value_name = "PAGE")]
    out: PathBuf,
    /// Write only the figure, as SVG.
    #[arg(long)]
    svg: bool,
    /// The title of the page. By default, the name of the file.
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct ReportOutput<'a> {
    out: &'a PathBuf,
    verdict: &'a Verdict,
    trace: String,
    messages: usize,
    bytes: usize,
}

impl Report {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let source = self.chosen.read()?;
        if source.plan().lane == Lane::Turmoil {
            let path = self.chosen.path().display();
            return Err(CliError::Other(format!(
                "{path}: a page shows requests and replies, but the lane turmoil carries bytes: set lane = \"fast\" in the plan, or use `quorlock-sim run`"
            )));
        }
        let (run, recording) = run_recorded(&Rc::new(source.plan().clone()));
        source.check(self.chosen.path(), &run)?;
        let shown = self.picture()?;
        let title = self.title.unwrap_or_else(|| self.chosen.name());
        let text = match shown {
            _ if !self.svg => page(&run, &recording, &title, &plan_file::write(&run.plan)?),
            Some(shown) => picture(&run, &recording, &shown),
            None => figure(&run, &recording),
        };
        write_file(&self.out, &text)?;
        if self.form.json {
            say_json(&ReportOutput {
                out: &self.out,
                verdict: &run.verdict,
                trace: format!("{:016x}", run.trace),
                messages: recording.messages.len(),
                bytes: text.len(),
            })?;
        } else {
            say(&story::summary(&run));
            say(&format!("{}", self.out.display()));
        }
        Ok(0)
    }

    /// Returns what the file says that the picture shows. A failure in JSON and the id of a scenario say nothing.
    fn picture(&self) -> Result<Option<Picture>, CliError> {
        let path = self.chosen.path();
        let text = std::fs::read_to_string(path).unwrap_or_default();
        match path.extension() {
            Some(kind) if kind == "toml" => Ok(plan_file::picture(path, &text)?),
            _ => Ok(None),
        }
    }
}
