//! Failures: plans that broke a property, each in a file from which the run can be repeated.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use quorlock_sim::property_test::TEST_FAILURE;
use quorlock_sim_check::run::{Run, Verdict};
use quorlock_sim_plan::Plan;

/// The version of this simulator. Only the version that wrote a plan repeats the run exactly.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A plan that failed, with its verdict: everything that is needed to repeat the run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The version of the simulator that wrote the failure.
    pub version: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The trace hash of the run, in hexadecimal.
    pub trace: String,
    /// The plan.
    pub plan: Plan,
}

/// The error when a failure cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file contains no failure.
    #[error("{path}: not a failure of this simulator: {error}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        error: serde_json::Error,
    },
    /// The failure belongs to a test, which has its own clients.
    #[error(
        "{path}: this is a failure of a test: replay it with `QUORLOCK_REPLAY={path} cargo test`"
    )]
    OfTest {
        /// The file.
        path: PathBuf,
    },
    /// Another version wrote the file.
    #[error(
        "{path}: written by version {found}, but this is {VERSION}: replay it with version {found}"
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version that wrote it.
        found: String,
    },
}

impl Failure {
    /// Creates the failure of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        Failure {
            version: VERSION.to_owned(),
            verdict: run.verdict.clone(),
            trace: format!("{:016x}", run.trace),
            plan: Plan::clone(&run.plan),
        }
    }

    /// Writes the failure into a folder, which is created if needed. Returns the path of the file.
    ///
    /// # Errors
    /// Returns [`FileError::Io`] if the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, FileError> {
        self.write_as(folder.join(format!("{}.json", stem(&self.plan))))
    }

    /// Writes the failure to a file, whose folder is created if needed. Returns the path of the file.
    ///
    /// # Errors
    /// Returns [`FileError::Io`] if the file cannot be written.
    pub fn write_as(&self, path: PathBuf) -> Result<PathBuf, FileError> {
        let text = serde_json::to_string_pretty(self);
        let text = text.map_err(|error| FileError::Io {
            path: path.clone(),
            error: error.into(),
        })?;
        write_file(path, &text)
    }

    /// Reads a failure from a file.
    ///
    /// # Errors
    /// Returns [`FileError`] if the file cannot be read, contains no failure, or was written by another version.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let path = path.to_owned();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => return Err(FileError::Io { path, error }),
        };
        if text.starts_with(TEST_FAILURE) {
            return Err(FileError::OfTest { path });
        }
        // Read the version first: a file of another version may differ in everything else.
        let version: Result<Version, _> = serde_json::from_str(&text);
        match version {
            Ok(Version { version }) if version == VERSION => {}
            Ok(Version { version: found }) => return Err(FileError::OtherVersion { path, found }),
            Err(error) => return Err(FileError::Foreign { path, error }),
        }
        serde_json::from_str(&text).map_err(|error| FileError::Foreign { path, error })
    }

    /// Runs the plan of the failure again.
    #[must_use]
    pub fn replay(&self) -> Run {
        crate::simulation::run(&Rc::new(self.plan.clone()))
    }

    /// Returns whether a run is the same as the recorded one, event for event.
    #[must_use]
    pub fn is_repeated_by(&self, run: &Run) -> bool {
        *self == Failure::of(run)
    }
}

/// Returns the name of a file for a run of this plan, without its extension.
pub(super) fn stem(plan: &Plan) -> String {
    let lock = match plan.lock {
        quorlock_sim_plan::LockKind::Single => "single",
        quorlock_sim_plan::LockKind::Multi => "multi",
        quorlock_sim_plan::LockKind::Redlock => "redlock",
    };
    format!("{lock}-seed-{}", plan.seed)
}

/// Writes a file, and creates missing folders above it.
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
