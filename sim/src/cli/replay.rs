//! `replay`.

use std::path::PathBuf;

use clap::Args;

use super::{Form, Trouble};
use crate::failure::Failure;

/// Repeat a failure from its file, event for event.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The file.
    file: PathBuf,
    #[command(flatten)]
    form: Form,
}

impl Replay {
    pub(super) fn run(self) -> Result<u8, Trouble> {
        let failure = Failure::read(&self.file)?;
        crate::plan_file::check(&failure.plan)?;
        let run = failure.replay();
        if !failure.is_repeated_by(&run) {
            return Err(Trouble::Other(format!(
                "{}: it does not repeat itself: the trace is {:016x} now, was {}; the code has changed since",
                self.file.display(),
                run.trace,
                failure.trace
            )));
        }
        super::run::tell(&run, self.form)
    }
}
