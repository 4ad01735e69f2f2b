//! A failure, in a file of its own that repeats it.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::plan::Plan;
use crate::simulation::{Run, Verdict};

/// Which simulator wrote it. A plan is repeated by the same one only.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is needed to repeat a run, and what it came to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Of the simulator that wrote it.
    pub version: String,
    /// The test that it is of; `None` for a run of the simulator's own clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// What it came to.
    pub verdict: Verdict,
    /// The trace of the run, in hexadecimal.
    pub trace: String,
    /// What was run.
    pub plan: Plan,
}

/// Why a failure cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is no such file.
    #[error("{path}: not a failure of this simulator: {error}")]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
    /// It is of a test: the clients that it is about are the test's own.
    #[error("{path}: it is of the test {test}: run `QUORLOCK_REPLAY={path} cargo test {test}`")]
    OfTest {
        /// Which file.
        path: PathBuf,
        /// Which test.
        test: String,
    },
    /// It was made by another version.
    #[error("{path}: made by version {found}, this is {VERSION}: replay it with that one")]
    OtherVersion {
        /// Which file.
        path: PathBuf,
        /// By which.
        found: String,
    },
}

impl Failure {
    /// Of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Failure {
            version: VERSION.to_owned(),
            test: None,
            verdict: run.verdict.clone(),
            trace: format!("{:016x}", run.trace),
            plan: Plan::clone(&run.plan),
        }
    }

    /// The same of a test.
    #[must_use]
    pub fn of_test(run: &Run, test: &str) -> Self {
        Failure {
            test: Some(test.to_owned()),
            ..Failure::of(run)
        }
    }

    /// Writes it into a folder, which is made if need be. Returns the file.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write(&self, folder: &Path) -> Result<PathBuf, FileError> {
        self.write_as(folder.join(format!("{}.json", stem(&self.plan))))
    }

    /// Writes it to a file, whose folder is made if need be. Returns the file.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write_as(&self, path: PathBuf) -> Result<PathBuf, FileError> {
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|error| FileError::Io {
            path: path.clone(),
            error: error.into(),
        })?;
        write_file(path, &text)
    }

    /// Reads it from a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = path.to_owned();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(FileError::Io { path, error }),
        };
        // The version first: a file of another one may look different in everything else.
        let version: Result<Version, _> = serde_json::from_str(&text);
        match version {
            Ok(Version { version }) if version == VERSION => {}
            Ok(Version { version: found }) => return Err(FileError::OtherVersion { path, found }),
            Err(error) => return Err(FileError::Foreign { path, error }),
        }
        serde_json::from_str(&text).map_err(|error| FileError::Foreign { path, error })
    }

    /// Itself, if it can be run without a test.
    ///
    /// # Errors
    /// [`FileError::OfTest`].
    pub fn of_no_test(self, path: &Path) -> Result<Self, FileError> {
        match self.test {
            Some(test) => Err(FileError::OfTest {
                path: path.to_owned(),
                test,
            }),
            None => Ok(self),
        }
    }

    /// Runs it again.
    #[must_use]
    pub fn replay(&self) -> Run {
        crate::simulation::run(&Rc::new(self.plan.clone()))
    }

    /// Whether a run is the same as the one that this was made of, event for event.
    #[must_use]
    pub fn is_repeated_by(&self, run: &Run) -> bool {
        let test = self.test.clone();
        *self
            == Failure {
                test,
                ..Failure::of(run)
            }
    }
}

/// The name of a file about a run of this plan, without its ending.
pub(super) fn stem(plan: &Plan) -> String {
    let lock = match plan.lock {
        crate::plan::LockKind::Single => "single",
        crate::plan::LockKind::Multi => "multi",
        crate::plan::LockKind::Redlock => "redlock",
    };
    format!("{lock}-seed-{}", plan.seed)
}

/// Writes a file, and the folders above it where they are missing.
pub(crate) fn write_file(path: PathBuf, text: &str) -> Result<PathBuf, FileError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| fs::write(&path, text)) {
        Ok(()) => Ok(path),
        Err(error) => Err(FileError::Io { path, error }),
    }
}

#[derive(Deserialize)]
struct Version {
    version: String,
}
