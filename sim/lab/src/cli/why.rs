//! The command `why`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;

use super::selection::Chosen;
use super::{CliError, Form, Threads, say, say_json, write_file};
use crate::plan_file;
use crate::simulation::run_recorded;
use crate::study::progress::{self, Counting};
use crate::study::why::{Cause, Decided, Explained, Why, explain};
use quorlock_sim::report::{page, page_of_causes};
use quorlock_sim_plan::Lane;

/// Explain a violation: which faults and messages led to it, and without which of them the property would have held.
///
/// The exit code is 0 if there is a violation to explain.
#[derive(Debug, Args)]
pub(super) struct WhyRun {
    #[command(flatten)]
    chosen: Chosen,
    /// Try to lose at most this many messages, the last ones before the violation. Each is a run.
    #[arg(long, default_value_t = 1_000)]
    messages: usize,
    /// At each instant of the curve, run what follows this many times, drawn anew. 0 draws no curve.
    #[arg(long, value_name = "RUNS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    curve: u64,
    /// Write a page for the browser that ends with the violation and greys what cannot have led to it; and beside it, under the same
    /// name with -passes, the page of the nearest run that passes.
    #[arg(short, long, value_name = "PAGE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    form: Form,
}

impl WhyRun {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let source = self.chosen.read()?;
        if source.plan().lane == Lane::Turmoil {
            let path = self.chosen.path().display();
            let why = format!(
                "{path}: only runs of the lane fast are explained: set lane = \"fast\" in the plan"
            );
            return Err(CliError::Other(why));
        }
        let explained = explain(&Rc::new(source.plan().clone()), self.messages);
        let mut explained = explained.map_err(|error| {
            let path = self.chosen.path().display();
            CliError::Other(format!("{path}: {error}"))
        })?;
        if 0 < self.curve {
            let bar = progress::bar(0, Counting::Runs);
            explained.draw_curve(self.curve, self.threads.count(), |ended, all| {
                bar.set_length(all);
                bar.set_position(ended);
            });
            bar.finish_and_clear();
        }
        if let Some(out) = &self.out {
            self.write_pages(out, &explained)?;
        }
        match self.form.json {
            true => say_json(&explained.why)?,
            false => tell(&explained.why),
        }
        Ok(0)
    }

    fn write_pages(&self, out: &Path, explained: &Explained) -> Result<(), CliError> {
        let title = self.chosen.name();
        let mut beside = None;
        if let Some(plan) = &explained.twin {
            let stem = out.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{stem}-passes.html");
            let (run, recording) = run_recorded(&Rc::new(plan.clone()));
            let title = format!(
                "{title}; {}",
                explained.why.twin.as_deref().unwrap_or_default()
            );
            let text = page(&run, &recording, &title, &plan_file::write(plan)?);
            write_file(&out.with_file_name(&name), &text)?;
            beside = Some(name);
        }
        let Explained {
            why,
            run,
            recording,
            ..
        } = explained;
        let plan = plan_file::write(&run.plan)?;
        let text = page_of_causes(run, recording, &title, &plan, &why.slice(beside));
        write_file(out, &text)
    }
}

fn tell(why: &Why) {
    say(&why.violation.to_string());
    let count = |causes: &[Cause]| causes.iter().filter(|cause| cause.is_in_slice).count();
    let tried = why
        .messages
        .iter()
        .filter(|cause| cause.is_necessary.is_some());
    say(&format!(
        "since {}: {} of {} faults and {} of {} messages can have led to it; {} messages were tried",
        why.since,
        count(&why.faults),
        why.faults.len(),
        count(&why.messages),
        why.messages.len(),
        tried.count()
    ));
    for (what, causes) in [("fault", &why.faults), ("message", &why.messages)] {
        let necessary = causes
            .iter()
            .filter(|cause| cause.is_necessary == Some(true));
        let necessary: Vec<&Cause> = necessary.collect();
        if necessary.is_empty() {
            say(&format!("no single {what} was necessary"));
        }
        for cause in necessary {
            say(&format!(
                "without this {what} it holds: {:>12} {}",
                cause.at.to_string(),
                cause.text
            ));
        }
    }
    tell_curve(why);
    if let Some(twin) = &why.twin {
        say(&format!("the nearest run that passes: {twin}"));
    }
}

fn tell_curve(why: &Why) {
    if let Some(first) = why.curve.first() {
        say(&format!("how likely it was: {first}"));
    }
    if let Some(Decided { from, until }) = why.decided() {
        say(&format!(
            "most was decided from {} to {}: {:.1} % before, {:.1} % behind",
            from.at,
            until.at,
            100.0 * from.share(),
            100.0 * until.share()
        ));
    }
}
