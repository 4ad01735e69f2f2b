//! The command `replay`.

use std::path::PathBuf;

use clap::Args;

use super::{CliError, Form};
use crate::study::failure::Failure;
use crate::study::source::Source;

/// Replay a failure from its file, event for event.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The file of the failure.
    file: PathBuf,
    #[command(flatten)]
    form: Form,
}

impl Replay {
    pub(super) fn run(self) -> Result<u8, CliError> {
        let failure = Failure::read(&self.file)?;
        quorlock_sim_plan::check(&failure.plan)?;
        let run = failure.replay();
        Source::Failure(Box::new(failure)).check(&self.file, &run)?;
        super::run::tell(&run, self.form)
    }
}
