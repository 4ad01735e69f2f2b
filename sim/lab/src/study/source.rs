//! Files from which a run can be repeated: a plan or a scenario in TOML, or a failure in JSON.

use std::fs;
use std::path::{Path, PathBuf};

use crate::plan_file::{self, PlanFileError};
use crate::study::failure::{Failure, FileError};
use quorlock_sim::property_test::TEST_FAILURE;
use quorlock_sim_check::run::Run;
use quorlock_sim_plan::Plan;

/// The content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// A plan without a verdict.
    Plan(Box<Plan>),
    /// A run that failed before.
    Failure(Box<Failure>),
}

/// The error of a file from which nothing can be run.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The failure cannot be read.
    #[error(transparent)]
    Failure(#[from] FileError),
    /// The plan cannot be read, or cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    /// The run of the failure differs from the recorded one.
    #[error(
        "{path}: the run differs from the recorded one: its trace is {now:016x}, and was {was}; the code has changed since"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The trace now.
        now: u64,
        /// The trace in the file.
        was: String,
    },
}

impl Source {
    /// Reads a file. A file that begins with `{` contains a failure.
    ///
    /// # Errors
    /// Returns [`SourceError`] with the file and the place in it.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        let text = fs::read_to_string(path).map_err(|error| FileError::Io {
            path: path.to_owned(),
            error,
        })?;
        let is_failure = text.trim_start().starts_with('{') || text.starts_with(TEST_FAILURE);
        if !is_failure {
            return Ok(Source::Plan(Box::new(plan_file::read(path)?)));
        }
        let failure = Failure::read(path)?;
        quorlock_sim_plan::check(&failure.plan).map_err(|error| PlanFileError::InFile {
            path: path.to_owned(),
            at: None,
            error,
        })?;
        Ok(Source::Failure(Box::new(failure)))
    }

    /// Returns the plan to run.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        match self {
            Source::Plan(plan) => plan,
            Source::Failure(failure) => &failure.plan,
        }
    }

    /// Checks that a run matches what the file records.
    ///
    /// # Errors
    /// Returns [`SourceError::Changed`] if it does not match.
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
