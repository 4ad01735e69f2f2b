//! Files from which a run can be repeated: a plan or a scenario in TOML, or a failure in JSON.

use std::fs;
use std::path::{Path, PathBuf};

use crate::plan::Plan;
use crate::plan::file::{self, PlanError};
use crate::simulation::Run;
use crate::study::failure::{Failure, FileError};

/// What a file says to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A plan, without what it comes to.
    Plan(Box<Plan>),
    /// A run that has failed before.
    Failure(Box<Failure>),
}

/// Why nothing can be run from a file.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It is no failure that can be read.
    #[error(transparent)]
    Failure(#[from] FileError),
    /// It is no plan that can be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A failure that does not fail in the same way any more.
    #[error(
        "{path}: it does not repeat itself: the trace is {now:016x} now, was {was}; the code has changed since"
    )]
    Changed {
        /// Which file.
        path: PathBuf,
        /// The trace now.
        now: u64,
        /// The trace in the file.
        was: String,
    },
}

impl Source {
    /// Reads it. A file that begins with `{` is a failure.
    ///
    /// # Errors
    /// [`SourceError`], which names the file and the place in it.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let text = fs::read_to_string(path).map_err(|error| FileError::Io {
            path: path.to_owned(),
            error,
        })?;
        if !text.trim_start().starts_with('{') {
            return Ok(Source::Plan(Box::new(file::read(path)?)));
        }
        let failure = Failure::read(path)?.of_no_test(path)?;
        file::check(&failure.plan).map_err(|error| PlanError::InFile {
            path: path.to_owned(),
            at: None,
            error: Box::new(error),
        })?;
        Ok(Source::Failure(Box::new(failure)))
    }

    /// What to run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        match self {
            Source::Plan(plan) => plan,
            Source::Failure(failure) => &failure.plan,
        }
    }

    /// Whether a run of it is what the file says.
    ///
    /// # Errors
    /// [`SourceError::Changed`].
    pub fn check(&self, path: &Path, run: &Run) -> Result<(), SourceError> {
        match self {
            Source::Failure(failure) if !failure.is_repeated_by(run) => Err(SourceError::Changed {
                path: path.to_owned(),
                now: run.trace,
                was: failure.trace.clone(),
            }),
            _ => Ok(()),
        }
    }
}
