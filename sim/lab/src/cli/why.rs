//! The command `why`.

use std::rc::Rc;

use clap::Args;

use super::selection::Chosen;
use super::{CliError, Form, say, say_json};
use crate::study::why::{Cause, Why, explain};
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
        let why = explained.map_err(|error| CliError::Other(error.to_string()))?;
        match self.form.json {
            true => say_json(&why)?,
            false => tell(&why),
        }
        Ok(0)
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
}
